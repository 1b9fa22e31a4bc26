// SPDX-License-Identifier: Apache-2.0
// Any bytes into a connection: request lines, headers, chunks, several requests one after the
// other. What comes back are answers of HTTP/1.1, each as long as it says and none of them 500, and
// the connection ends. The first byte says where the bytes are cut in two.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/transport.h"

namespace {

using namespace toto::server;

void require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::abort();
}

/// Says what it was asked: all of it went through the parser.
void echo(const ExchangePointer& exchange) {
  const HttpRequest& request = exchange->request();
  HttpResponse response;
  response.content_type = "application/octet-stream";
  response.body = request.method + " " + request.path + "?" + request.query + request.body;
  for (const HttpHeader& header : request.headers) {
    require(header.name.find_first_of("\r\n") == std::string::npos, "a line in a name");
    require(header.value.find_first_of("\r\n") == std::string::npos, "a line in a value");
    response.body += header.name + header.value;
  }
  require(good_request_id(request.id), "the id of the request");
  exchange->respond(std::move(response));
}

Transport& server() {
  static Transport& one = *[] {
    TransportOptions options;
    options.port = 0;
    options.max_body_bytes = 1 << 16;
    options.max_header_bytes = 4096;
    TransportHooks hooks;
    hooks.handler = echo;
    return new Transport(options, std::move(hooks));
  }();
  return one;
}

/// A connection to the server. A signal, as libFuzzer's clock sends them, makes it try again.
int connect_to_server() {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(server().port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (;;) {
    const int s = ::socket(AF_INET, SOCK_STREAM, 0);
    require(s >= 0, "socket");
    if (::connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return s;
    require(errno == EINTR, "connect");
    ::close(s);
  }
}

std::string talk(std::string_view first, std::string_view second) {
  const int s = connect_to_server();
  const timeval patience = {8, 0};
  ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  for (std::string_view part : {first, second}) {
    while (!part.empty()) {
      const ssize_t n = ::send(s, part.data(), part.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;  // the server has read enough
      part.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  (void)::shutdown(s, SHUT_WR);
  std::string out;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t n = ::recv(s, piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    require(n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK), "the connection does not end");
    if (n <= 0) break;
    out.append(piece.data(), static_cast<std::size_t>(n));
  }
  const linger none = {1, 0};  // no port waits behind it
  ::setsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  ::close(s);
  return out;
}

/// One answer after the other. `head`: a method that has no body in its answer may be among them.
void check(std::string_view text, bool head) {
  while (!text.empty()) {
    require(text.starts_with("HTTP/1.1 "), "no status line");
    if (text.starts_with("HTTP/1.1 100 Continue\r\n\r\n")) {
      text.remove_prefix(25);
      continue;
    }
    const int status = std::atoi(std::string(text.substr(9, 3)).c_str());
    require(status != 500 && !reason_phrase(status).empty(), "the status");
    const std::size_t end = text.find("\r\n\r\n");
    require(end != std::string_view::npos, "headers without an end");
    const std::size_t at = text.find("Content-Length: ");
    require(at < end, "no Content-Length");
    const std::size_t length =
        std::strtoul(std::string(text.substr(at + 16, 20)).c_str(), nullptr, 10);
    if (head) return;
    require(text.size() >= end + 4 + length, "a body that is too short");
    text.remove_prefix(end + 4 + length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const std::size_t cut = text.empty() ? 0 : bytes[0] * text.size() / 256;
  const bool head = text.find("HEAD") != std::string_view::npos;
  check(talk(text.substr(0, cut), text.substr(cut)), head);
  return 0;
}
