// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 over TCP: connections, limits and times. What is asked and answered is up to the
// handler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/http.h"

namespace toto::server {

struct TransportOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8000;  ///< 0: any that is free
  int threads = 2;            ///< that read and write; forecasts have their own
  std::size_t max_connections = 10'240;
  std::size_t max_header_bytes = 16 << 10;
  std::size_t max_body_bytes = std::size_t{16} << 20;
  /// Of the bodies of all requests that are being read or answered. One more is 429 memory_full.
  std::size_t max_held_bytes = std::size_t{512} << 20;
  double header_seconds = 10;  ///< from the first byte of a header to its last
  double body_seconds = 60;    ///< of a whole body
  double idle_seconds = 75;    ///< between requests
  double write_seconds = 30;   ///< in which a client must take something
};

struct TransportHooks {
  Handler handler;
  /// Whether the body of this request (a header alone) is read by Exchange::read.
  std::function<bool(const HttpRequest&)> streams;
  /// After an answer was written, or given up (`sent` false). On threads of the transport.
  std::function<void(const HttpRequest&, const HttpResponse&, std::size_t bytes, bool sent)> done;
};

struct TransportCounts {
  std::uint64_t connections = 0;  ///< now
  std::uint64_t accepted = 0, refused = 0;
  std::uint64_t in_flight = 0;   ///< requests that were read and are not answered
  std::uint64_t held_bytes = 0;  ///< of bodies
};

class Transport {
 public:
  /// Binds and listens. Throws Error address_unavailable (74), invalid_address (2).
  Transport(const TransportOptions& options, TransportHooks hooks);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] TransportCounts counts() const;

  /// Takes no more connections. What comes on open ones is still answered, each with
  /// "Connection: close"; one that stays silent for a second is closed. Returns at once.
  void begin_drain();
  /// The same; returns when none is left, or false after `timeout`.
  bool drain(std::chrono::milliseconds timeout);
  /// Closes everything.
  void stop();

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace toto::server
