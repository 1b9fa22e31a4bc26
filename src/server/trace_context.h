// SPDX-License-Identifier: Apache-2.0
// The header traceparent of W3C Trace Context.
#pragma once

#include <optional>
#include <string_view>

namespace toto::server {

struct TraceContext {
  std::string_view trace_id;  ///< 32 hexadecimal digits, of the header's memory
  std::string_view span_id;   ///< 16 of them
};

/// "00-<32 digits>-<16 digits>-<2 digits>" (W3C Trace Context, section 3.2.2). A later version may
/// have more behind that. Nothing where it is anything else, as the recommendation has it: such a
/// header is ignored.
std::optional<TraceContext> parse_traceparent(std::string_view header);

}  // namespace toto::server
