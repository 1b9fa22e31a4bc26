// SPDX-License-Identifier: Apache-2.0
#include "server/trace_context.h"

#include <cstddef>

namespace toto::server {
namespace {

constexpr std::size_t kLength = 55;  // of version 00

bool digits(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  if (header.size() < kLength) return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  const std::string_view flags = header.substr(53, 2);
  const TraceContext out = {header.substr(3, 32), header.substr(36, 16)};
  if (header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  if (!digits(version) || !digits(flags) || version == "ff") return std::nullopt;
  if (header.size() > kLength && (version == "00" || header[kLength] != '-')) return std::nullopt;
  for (const std::string_view id : {out.trace_id, out.span_id}) {
    if (!digits(id) || zero(id)) return std::nullopt;
  }
  return out;
}

}  // namespace toto::server
