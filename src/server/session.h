// SPDX-License-Identifier: Apache-2.0
// One connection: reads a request, waits for its answer, writes it, and again.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "server/transport_impl.h"

namespace toto::server {

constexpr double kTickSeconds = 1;  // between ticks of a source that is waited for

/// Everything but the first members runs on the strand of the socket, so it needs no lock.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Transport::Impl> owner, boost::asio::ip::tcp::socket socket);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From any thread:
  void start();
  /// The server ends: an idle connection has a moment left for its next request.
  void hurry();
  void abandon();
  void respond(HttpResponse response);
  void post(std::function<void()> work);
  void on_gone(std::function<void()> gone);
  void on_deadline(Clock::time_point time, std::function<void()> late);
  void read(std::function<void(BodyPiece)> take);
  /// On the strand alone.
  bool keep(std::size_t bytes);

 private:
  enum class Phase { idle, header, body, answer, write, linger, closed };

  void wait_for_request();
  void await_bytes();
  void read_header();
  void have_header(boost::system::error_code ec);
  [[nodiscard]] bool take_header();
  void read_body();
  void read_piece(std::function<void(BodyPiece)> take);
  void have_piece(boost::system::error_code ec);
  void dispatch();
  void watch();
  void answer(HttpResponse& response);
  void write_some();
  void take_piece(std::string piece, bool last);
  void finish(bool sent);
  void linger();
  void discard();
  void reject(int status, std::string_view code, std::string_view message,
              std::string_view remedy = {});
  void empty_buffer();
  bool hold(std::size_t bytes);
  void release();
  void close();
  void arm(double time);
  void timeout();

  std::shared_ptr<Transport::Impl> owner_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;  // limited: see empty_buffer
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  // Of a body that is read while it is answered:
  std::optional<boost::beast::http::request_parser<boost::beast::http::buffer_body>> stream_;
  boost::asio::steady_timer read_timer_;
  std::function<void(BodyPiece)> read_take_;
  std::string piece_;
  bool reading_ = false;
  std::string peer_;
  Phase phase_ = Phase::idle;
  std::uint64_t timer_run_ = 0;
  bool timed_out_ = false, watching_ = false, peer_gone_ = false, keep_alive_ = false;
  bool old_version_ = false, head_only_ = false, last_piece_ = false;
  bool waiting_ = false;  // for the source of an answer
  std::size_t held_ = 0;
  std::function<void()> gone_, late_;
  HttpRequest request_;  // of a request that is answered here
  std::shared_ptr<Exchange> exchange_;
  HttpResponse response_;
  std::string head_;
  std::size_t written_ = 0, sent_bytes_ = 0;
  std::size_t discarded_ = 0;
};

/// One request of a session, as handlers see it.
class SessionExchange final : public Exchange {
 public:
  SessionExchange(std::shared_ptr<Session> session, HttpRequest request)
      : session_(std::move(session)), request_(std::move(request)) {}
  HttpRequest& request() override { return request_; }
  void respond(HttpResponse response) override {
    if (!answered_.exchange(true)) session_->respond(std::move(response));
  }
  void post(std::function<void()> work) override { session_->post(std::move(work)); }
  void on_gone(std::function<void()> gone) override { session_->on_gone(std::move(gone)); }
  void on_deadline(Clock::time_point time, std::function<void()> late) override {
    session_->on_deadline(time, std::move(late));
  }

  void read(std::function<void(BodyPiece)> take) override { session_->read(std::move(take)); }
  bool keep(std::size_t bytes) override { return session_->keep(bytes); }
  /// No handler has it any more: answers 500 where there was no answer.
  void let_go() noexcept;

 private:
  std::shared_ptr<Session> session_;
  HttpRequest request_;
  std::atomic<bool> answered_{false};
};

}  // namespace toto::server
