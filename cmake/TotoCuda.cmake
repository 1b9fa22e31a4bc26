# The CUDA backend is an optional part of the library (TOTO_CUDA). The CUDA runtime is linked statically and
# loads the driver when it is first called, so the program also runs where there is neither.
#
# Kernels are compiled for CMAKE_CUDA_ARCHITECTURES. A file whose name ends in _sm90a uses instructions that
# only sm_90a has: it is compiled for that architecture alone, and the program asks the device at run time
# whether it is one.
set(TOTO_CUDA_HOME "$ENV{CUDA_HOME}" CACHE PATH
    "Folder of the CUDA toolkit, with bin/nvcc; empty: the one on the PATH, then /usr/local/cuda")
option(TOTO_CUDA_FUSED "Build the fused forwards (src/backend/cuda/fused); they change the speed, never a bit" ON)
set(toto_cuda_found FALSE)

# toto_find_cuda(): enables the language CUDA if there is a toolkit of CUDA 13 or later that can link a
# program. Sets toto_cuda_found, toto_cudart, toto_cuda_include, and toto_nvtx where NVTX's headers are.
macro(toto_find_cuda)
  if(DEFINED TOTO_CUDA_FOUND_FOR AND NOT TOTO_CUDA_HOME STREQUAL TOTO_CUDA_FOUND_FOR)
    # Another toolkit was chosen: forget what CMake keeps of the one before.
    file(REMOVE ${CMAKE_BINARY_DIR}${CMAKE_FILES_DIRECTORY}/${CMAKE_VERSION}/CMakeCUDACompiler.cmake)
    get_cmake_property(toto_cached CACHE_VARIABLES)
    foreach(toto_name ${toto_cached})
      if(toto_name MATCHES "^(TOTO_NVCC|CMAKE_CUDA_COMPILER.*|CUDA_[a-z].*|CUDAToolkit_.*)$"
         AND NOT toto_name STREQUAL "CMAKE_CUDA_COMPILER_LAUNCHER")
        unset(${toto_name} CACHE)
      endif()
    endforeach()
  endif()
  set(TOTO_CUDA_FOUND_FOR "${TOTO_CUDA_HOME}" CACHE INTERNAL "The toolkit that was searched")
  if(TOTO_CUDA_HOME)
    find_program(TOTO_NVCC nvcc PATHS ${TOTO_CUDA_HOME}/bin NO_DEFAULT_PATH)
  else()
    find_program(TOTO_NVCC nvcc PATHS /usr/local/cuda/bin)
  endif()
  mark_as_advanced(TOTO_NVCC)
  set(toto_nvcc_major 0)
  if(TOTO_NVCC)
    execute_process(COMMAND ${TOTO_NVCC} --version OUTPUT_VARIABLE toto_nvcc_version ERROR_QUIET)
    if(toto_nvcc_version MATCHES "release ([0-9]+)\\.[0-9]+")
      set(toto_nvcc_major ${CMAKE_MATCH_1})
    endif()
  endif()
  if(toto_nvcc_major GREATER_EQUAL 13)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "What kernels are compiled for; 90: sm_90 and PTX")
    endif()
    # Kernels are optimised alike in every configuration.
    foreach(toto_config DEBUG RELEASE RELWITHDEBINFO MINSIZEREL)
      set(CMAKE_CUDA_FLAGS_${toto_config} -O3 CACHE STRING "Flags of nvcc")
    endforeach()
    set(ENV{CUDACXX} ${TOTO_NVCC})
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
      find_package(CUDAToolkit REQUIRED)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know it
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      endif()
      set(toto_cudart ${CUDA_cudart_static_LIBRARY})
      set(toto_cuda_include ${CUDAToolkit_INCLUDE_DIRS})
      set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # toto_link_cudart() links it
      set(CMAKE_CUDA_USE_RESPONSE_FILE_FOR_INCLUDES OFF)  # so that compile_commands.json has them
      set(toto_cuda_found TRUE)
      find_path(toto_nvtx nvtx3/nvToolsExt.h PATHS ${toto_cuda_include} NO_DEFAULT_PATH NO_CACHE)
    else()
      unset(CMAKE_CUDA_COMPILER CACHE)
    endif()
  endif()
endmacro()

if(TOTO_CUDA)
  toto_find_cuda()
  if(toto_cuda_found)
    message(STATUS "CUDA backend: ${CMAKE_CUDA_COMPILER} (CUDA ${CUDAToolkit_VERSION})")
    if(NOT toto_nvtx)
      message(STATUS "CUDA backend: without ranges for profilers, nvtx3/nvToolsExt.h was not found")
    endif()
  elseif(TOTO_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA backend: left out, no CUDA 13 compiler with its static runtime was found")
  else()
    message(FATAL_ERROR "TOTO_CUDA is ON, but no CUDA 13 compiler with its static runtime was found")
  endif()
endif()

# toto_cuda_options(TARGET ARCHITECTURE...): how kernels are compiled.
function(toto_cuda_options target)
  # Contraction is off: whether a*b+c rounds once or twice is written in the source.
  target_compile_options(${target} PRIVATE
    # 554: a conversion that never takes place, which its own constraint says (src/backend/view.h).
    "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;--expt-relaxed-constexpr;SHELL:-Werror all-warnings;SHELL:--diag-suppress 554>"
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-ffp-contract=off>)
  if(TOTO_PYTHON)  # a wheel holds the kernels twice, in the module and in the program
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
  endif()
  set_target_properties(${target} PROPERTIES
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES "${ARGN}")
endfunction()

# toto_link_cudart(TARGET): the static runtime, which needs dlopen to load the driver.
function(toto_link_cudart target)
  target_link_libraries(${target} PUBLIC ${toto_cudart} ${CMAKE_DL_LIBS} rt)
endfunction()

# toto_cuda_sources(COMPONENT): adds the kernels of src/backend/cuda to toto_COMPONENT.
function(toto_cuda_sources component)
  if(NOT toto_cuda_found)
    return()
  endif()
  set(target toto_${component})
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cu)
  set(definitions TOTO_CUDA)
  set(fused ${kernels})
  list(FILTER fused INCLUDE REGEX "/cuda/fused/")
  if(fused AND TOTO_CUDA_FUSED)
    list(APPEND definitions TOTO_CUDA_FUSED)
  else()
    list(FILTER kernels EXCLUDE REGEX "/cuda/fused/")
  endif()
  set(sm90a ${kernels})
  list(FILTER sm90a INCLUDE REGEX "_sm90a\\.cu$")
  list(FILTER kernels EXCLUDE REGEX "_sm90a\\.cu$")
  target_sources(${target} PRIVATE ${kernels})
  toto_cuda_options(${target} ${CMAKE_CUDA_ARCHITECTURES})
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_include_directories(${target} SYSTEM PRIVATE ${toto_cuda_include})
  toto_link_cudart(${target})
  # An architecture belongs to a whole target, so these files have one of their own.
  add_library(${target}_sm90a OBJECT ${sm90a})
  toto_cuda_options(${target}_sm90a 90a-real)
  target_compile_definitions(${target}_sm90a PRIVATE ${definitions})
  target_include_directories(${target}_sm90a PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  set_property(GLOBAL PROPERTY toto_extra_objects_${component} $<TARGET_OBJECTS:${target}_sm90a>)
  set_property(GLOBAL PROPERTY toto_cuda_libraries ${toto_cudart} ${CMAKE_DL_LIBS} rt)
endfunction()
