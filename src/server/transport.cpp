// SPDX-License-Identifier: Apache-2.0
#include "server/transport.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "server/session.h"
#include "toto/error.hpp"

namespace toto::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

}  // namespace

void Transport::Impl::listen() {
  error_code ec;
  const auto address = asio::ip::make_address(options.address, ec);
  if (ec) {
    throw Error(ExitStatus::usage, "invalid_address",
                fmt::format("expected an IP address, found '{}'", options.address), "--host",
                "127.0.0.1 for this machine alone, 0.0.0.0 for all");
  }
  const tcp::endpoint end(address, options.port);
  acceptor.open(end.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(end, ec);
  if (!ec) acceptor.listen(4096, ec);
  if (ec) {
    throw Error(ExitStatus::io, "address_unavailable",
                fmt::format("cannot listen: {}", ec.message()),
                fmt::format("{}:{}", options.address, options.port),
                "choose another --port, or end what listens there");
  }
  port = acceptor.local_endpoint().port();
}

void Transport::Impl::accept() {
  acceptor.async_accept(asio::make_strand(io), [this](error_code ec, tcp::socket socket) {
    if (ec == asio::error::operation_aborted || !acceptor.is_open()) return;
    if (ec) {  // no more files, most likely
      pause.expires_after(std::chrono::milliseconds(50));
      pause.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
      return;
    }
    take(std::move(socket));
    accept();
  });
}

void Transport::Impl::take(tcp::socket socket) {
  std::size_t open = 0;
  {
    const std::scoped_lock lock(mutex);
    open = sessions.size();
  }
  if (open >= options.max_connections) {
    refused.fetch_add(1);
    constexpr std::string_view body =
        "{\"error\":{\"code\":\"too_many_connections\",\"message\":\"try again in a moment\"}}\n";
    const std::string text = fmt::format(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
        body.size(), body);
    (void)::send(socket.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  accepted.fetch_add(1);
  const auto session = std::make_shared<Session>(shared_from_this(), std::move(socket));
  {
    const std::scoped_lock lock(mutex);
    sessions.emplace(session.get(), session);
  }
  session->start();
}

void Transport::Impl::forget(Session* session) {
  const std::scoped_lock lock(mutex);
  sessions.erase(session);
  changed.notify_all();
}

/// From here on the system drops the first packet of a connection, which is sent again after a
/// second: to no listener, and the client knows that nothing was taken. A connection that is there
/// when a listener is closed would be reset, with the request that it may have sent.
void Transport::Impl::refuse_new() noexcept {
  constexpr std::uint32_t kFlags = 13;  // their byte in the header of TCP
  constexpr std::uint32_t kSyn = 0x02, kAck = 0x10, kWhole = 0xFFFFFFFF;
  std::array<sock_filter, 5> code = {{{BPF_LD | BPF_B | BPF_ABS, 0, 0, kFlags},
                                      {BPF_ALU | BPF_AND | BPF_K, 0, 0, kSyn | kAck},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kSyn},
                                      {BPF_RET | BPF_K, 0, 0, 0},
                                      {BPF_RET | BPF_K, 0, 0, kWhole}}};
  const sock_fprog program = {code.size(), code.data()};
  // Where the system has no filters, a connection may come between the last accept and the close.
  (void)::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_ATTACH_FILTER, &program,
                     sizeof program);
}

/// Who has connected already is served.
void Transport::Impl::take_waiting() {
  error_code ec;
  acceptor.non_blocking(true, ec);
  for (;;) {
    tcp::socket socket(asio::make_strand(io));
    acceptor.accept(socket, ec);
    if (ec) return;
    take(std::move(socket));
  }
}

void Transport::Impl::stop_listening() {
  take_waiting();
  error_code ignored;
  acceptor.close(ignored);
  const std::scoped_lock lock(mutex);
  listening = false;
  changed.notify_all();
}

std::vector<std::shared_ptr<Session>> Transport::Impl::all() {
  std::vector<std::shared_ptr<Session>> found;
  const std::scoped_lock lock(mutex);
  for (const auto& [key, session] : sessions) {
    if (auto held_on = session.lock()) found.push_back(std::move(held_on));
  }
  return found;
}

void Transport::Impl::run() {
  for (;;) {
    try {
      io.run();
      return;
    } catch (const std::exception&) {
      continue;  // what one session threw is no reason for the others to end
    }
  }
}

Transport::Transport(const TransportOptions& options, TransportHooks hooks)
    : impl_(std::make_shared<Impl>(options, std::move(hooks))) {
  impl_->listen();
  impl_->accept();
  for (int i = 0; i < options.threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get()] { impl->run(); });
  }
}

// For want of memory it may throw, and then nothing better can be done than to end.
// NOLINTNEXTLINE(bugprone-exception-escape)
Transport::~Transport() { stop(); }

std::uint16_t Transport::port() const { return impl_->port; }

TransportCounts Transport::counts() const {
  TransportCounts counts;
  {
    const std::scoped_lock lock(impl_->mutex);
    counts.connections = impl_->sessions.size();
  }
  counts.accepted = impl_->accepted;
  counts.refused = impl_->refused;
  counts.in_flight = impl_->in_flight;
  counts.held_bytes = impl_->held;
  return counts;
}

void Transport::begin_drain() {
  Impl& impl = *impl_;
  if (impl.draining.exchange(true)) return;
  asio::post(impl.acceptor.get_executor(), [&impl] {
    impl.refuse_new();
    impl.take_waiting();
    // What was half open when it began: it is there after a round trip.
    impl.pause.expires_after(std::chrono::milliseconds(50));
    impl.pause.async_wait([&impl](error_code) { impl.stop_listening(); });
  });
  for (const auto& session : impl.all()) session->hurry();
}

bool Transport::drain(std::chrono::milliseconds timeout) {
  begin_drain();
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  // Who has connected already is taken first, however short the timeout.
  impl.changed.wait_for(lock, std::chrono::seconds(1), [&impl] { return !impl.listening; });
  return impl.changed.wait_for(lock, timeout, [&impl] { return impl.sessions.empty(); });
}

void Transport::stop() {
  Impl& impl = *impl_;
  if (impl.threads.empty()) return;
  asio::post(impl.acceptor.get_executor(), [&impl] {
    error_code ignored;
    impl.acceptor.close(ignored);
  });
  for (const auto& session : impl.all()) session->abandon();
  impl.work.reset();
  {
    std::unique_lock lock(impl.mutex);
    impl.changed.wait_for(lock, std::chrono::seconds(2), [&impl] { return impl.sessions.empty(); });
  }
  impl.io.stop();
  for (std::thread& thread : impl.threads) thread.join();
  impl.threads.clear();
  impl.io.restart();  // what is left in the queue holds sessions, and they hold `impl`
  for (bool more = true; more;) {
    try {
      more = impl.io.poll_one() > 0;
    } catch (const std::exception&) {
      continue;  // as in run()
    }
  }
}

}  // namespace toto::server
