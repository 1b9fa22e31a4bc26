# Flags every target of the project is compiled with.
add_library(toto_options INTERFACE)
target_compile_features(toto_options INTERFACE cxx_std_20)
set(CMAKE_CXX_EXTENSIONS OFF)
# What the shared library exports is what the public headers declare (include/toto).
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# Contraction is off: whether a*b+c rounds once or twice is written in the source, not left to a compiler.
# Those of kernels are in TotoCuda.cmake: nvcc takes others.
target_compile_options(toto_options INTERFACE
  $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Werror;-ffp-contract=off>)
if(TOTO_SANITIZE)
  target_compile_options(toto_options INTERFACE -fsanitize=${TOTO_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(toto_options INTERFACE -fsanitize=${TOTO_SANITIZE})
endif()
if(TOTO_BUILD_FUZZERS)
  target_compile_options(toto_options INTERFACE -fsanitize=fuzzer-no-link)
  # Counting what only computes would tell fuzzers little, and tests run in the same build.
  file(GLOB computes CONFIGURE_DEPENDS src/backend/cpu/*_kernels.cpp src/backend/cpu/*_x86.cpp src/backend/reference/*.cpp)
  set_source_files_properties(${computes} PROPERTIES COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
endif()
