// SPDX-License-Identifier: Apache-2.0
// Counts calls of the CUDA driver by name while a program runs, and prints them to standard error
// when it ends. The program stays as it is. With CUPTI, which is in NVIDIA's toolkit and in the
// PyPI package nvidia-cuda-cupti:
//
//   flags="-I $CUPTI/include -I $CUDA/include $CUPTI/lib/libcupti.so.13"
//   g++ -std=c++20 -shared -fPIC bench/api_calls.cpp $flags -o build/libapi_calls.so
//   CUDA_INJECTION64_PATH=build/libapi_calls.so toto bench a --device cuda --runs 50
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex guard;
std::map<std::string, unsigned long>* counts = nullptr;  // lives on while the program ends

void count(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_ENTER) return;
  const std::lock_guard lock(guard);
  ++(*counts)[call.functionName];
}

void report() {
  const std::lock_guard lock(guard);
  for (const auto& [name, n] : *counts) std::fprintf(stderr, "api %s %lu\n", name.c_str(), n);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  counts = new std::map<std::string, unsigned long>;
  CUpti_SubscriberHandle subscriber;
  const auto callback = reinterpret_cast<CUpti_CallbackFunc>(count);
  if (cuptiSubscribe(&subscriber, callback, nullptr) != CUPTI_SUCCESS ||
      cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) != CUPTI_SUCCESS) {
    std::fprintf(stderr, "api: CUPTI refuses\n");
    std::exit(70);
  }
  std::atexit(report);
  return 1;
}
