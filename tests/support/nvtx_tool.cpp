// SPDX-License-Identifier: Apache-2.0
// A tool as NVTX loads it (NVTX_INJECTION64_PATH): writes the ranges of every domain to the file
// that TOTO_NVTX_LOG names, a line for each: "push DOMAIN NAME" or "pop DOMAIN".
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::FILE* log_file() {
  static std::FILE* const file = std::fopen(std::getenv("TOTO_NVTX_LOG"), "w");
  return file;
}

nvtxDomainHandle_t create(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));
}

const char* name_of(nvtxDomainHandle_t domain) {
  return reinterpret_cast<const std::string*>(domain)->c_str();
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  std::fprintf(log_file(), "push %s %s\n", name_of(domain), range->message.ascii);
  return std::fflush(log_file());
}

int pop(nvtxDomainHandle_t domain) {
  std::fprintf(log_file(), "pop %s\n", name_of(domain));
  return std::fflush(log_file());
}

template <typename Function>
NvtxFunctionPointer pointer_to(Function function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t tables) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = pointer_to(create);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = pointer_to(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = pointer_to(pop);
  return 1;
}
