// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/isa.h"

#include "core/cpu_info.h"
#include "toto/error.hpp"

namespace toto::cpu {

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::sse4:
      return "sse4";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
    case Isa::amx_bf16:
      return "amx_bf16";
    case Isa::neon:
      return "neon";
  }
  return "";
}

std::vector<Isa> available_isas() {
  const CpuFeatures& f = cpu_features();
  std::vector<Isa> isas;
  if (f.amx_bf16) isas.push_back(Isa::amx_bf16);
  if (f.avx512_bf16) isas.push_back(Isa::avx512_bf16);
  if (f.avx512) isas.push_back(Isa::avx512);
  if (f.avx2) isas.push_back(Isa::avx2);
  if (f.sse4) isas.push_back(Isa::sse4);
  if (f.neon) isas.push_back(Isa::neon);
  return isas;
}

Isa find_isa(std::string_view name) {
  const std::vector<Isa> available = available_isas();
  std::string list;
  for (const Isa isa : available) {
    if (name.empty() || isa_name(isa) == name) return isa;
    list += (list.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  throw Error(ExitStatus::usage, "invalid_isa",
              "no kernels for the instruction set '" + std::string(name) + "' on this machine", {},
              list.empty() ? "use the reference backend" : "use one of: " + list);
}

}  // namespace toto::cpu
