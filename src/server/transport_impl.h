// SPDX-License-Identifier: Apache-2.0
// What connections share. Included by the files that know Boost, and by no other.
#pragma once

#include <atomic>
#include <boost/asio.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "server/transport.h"

namespace toto::server {

class Session;

struct Transport::Impl : std::enable_shared_from_this<Transport::Impl> {
  Impl(const TransportOptions& o, TransportHooks h) : options(o), hooks(std::move(h)) {}

  void listen();
  void accept();
  void take(boost::asio::ip::tcp::socket socket);
  void refuse_new() noexcept;
  void take_waiting();
  void stop_listening();
  void run();
  void forget(Session* session);
  [[nodiscard]] std::vector<std::shared_ptr<Session>> all();

  const TransportOptions options;
  const TransportHooks hooks;
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  boost::asio::ip::tcp::acceptor acceptor{boost::asio::make_strand(io)};
  boost::asio::steady_timer pause{acceptor.get_executor()};
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> accepted{0}, refused{0}, in_flight{0}, held{0};
  std::atomic<bool> draining{false};
  std::uint16_t port = 0;
  mutable std::mutex mutex;  // of what follows
  std::condition_variable changed;
  std::unordered_map<Session*, std::weak_ptr<Session>> sessions;
  bool listening = true;
};

}  // namespace toto::server
