// SPDX-License-Identifier: Apache-2.0
// How a session answers: in one piece, or piece by piece as a source gives them.
#include <fmt/format.h>

#include <array>

#include "server/session.h"

namespace toto::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr double kLingerSeconds = 2;  // for a client to read the last answer

}  // namespace

void Session::answer(HttpResponse& response) {
  if (phase_ == Phase::closed) {  // stopped meanwhile
    response_ = std::move(response);
    return finish(false);
  }
  if (phase_ != Phase::answer) return;
  phase_ = Phase::write;
  gone_ = late_ = {};
  if (watching_) {
    error_code ignored;
    socket_.cancel(ignored);
  }
  response_ = std::move(response);
  const HttpRequest& request = exchange_->request();
  if (response_.close || owner_->draining || (response_.source && old_version_) ||
      (stream_ && !response_.source)) {
    keep_alive_ = false;
  }
  head_ = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nX-Request-Id: {}\r\n", response_.status,
                      reason_phrase(response_.status), http_date(), request.id);
  if (response_.status != 204) {
    if (!response_.content_type.empty()) {
      head_ += fmt::format("Content-Type: {}\r\n", response_.content_type);
    }
    if (!response_.source) {
      head_ += fmt::format("Content-Length: {}\r\n", response_.body.size());
    } else if (!old_version_) {
      head_ += "Transfer-Encoding: chunked\r\n";
    }
  }
  for (const HttpHeader& header : response_.headers) {
    head_ += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  head_ +=
      keep_alive_ ? (old_version_ ? "Connection: keep-alive\r\n" : "") : "Connection: close\r\n";
  head_ += "\r\n";
  if (head_only_) {
    response_.body.clear();
    response_.source.reset();
  }
  written_ = sent_bytes_ = 0;
  last_piece_ = !response_.source;
  write_some();
}

void Session::write_some() {
  if (phase_ != Phase::write) return finish(false);
  const std::size_t all = head_.size() + response_.body.size();
  if (written_ == all) {
    if (last_piece_) return finish(true);
    waiting_ = true;
    arm(kTickSeconds);
    if (!stream_ && !watching_) watch();
    response_.source->next([self = shared_from_this()](std::string piece, bool last) {
      asio::post(self->socket_.get_executor(), [self, last, p = std::move(piece)]() mutable {
        self->take_piece(std::move(p), last);
      });
    });
    return;
  }
  arm(owner_->options.write_seconds);
  const std::size_t of_head = std::min(written_, head_.size());
  const std::size_t of_body = written_ - of_head;
  const std::array<asio::const_buffer, 2> rest = {
      asio::buffer(head_.data() + of_head, head_.size() - of_head),
      asio::buffer(response_.body.data() + of_body, response_.body.size() - of_body)};
  socket_.async_write_some(rest, [self = shared_from_this()](error_code ec, std::size_t n) {
    self->written_ += n;
    self->sent_bytes_ += n;
    if (ec) return self->finish(false);
    self->write_some();
  });
}

void Session::take_piece(std::string piece, bool last) {
  if (!waiting_) return;  // closed meanwhile
  waiting_ = false;
  head_ = !piece.empty() && !old_version_ ? fmt::format("{:x}\r\n", piece.size()) : std::string();
  response_.body = std::move(piece);
  if (!old_version_) {
    if (!response_.body.empty()) response_.body += "\r\n";
    if (last) response_.body += "0\r\n\r\n";
  }
  last_piece_ = last;
  written_ = 0;
  write_some();
}

void Session::finish(bool sent) {
  if (!exchange_) return;
  waiting_ = false;
  owner_->in_flight.fetch_sub(1);
  if (response_.source && response_.source->account() != nullptr) {
    response_.account = *response_.source->account();
  }
  const std::shared_ptr<Exchange> exchange = std::exchange(exchange_, {});
  release();
  if (owner_->hooks.done) {
    owner_->hooks.done(exchange->request(), response_, sent_bytes_, sent);
  }
  response_ = {};
  head_.clear();
  if (phase_ == Phase::closed) return;
  if (!sent) return close();
  if (stream_ && (reading_ || !stream_->is_done())) keep_alive_ = false;
  keep_alive_ ? wait_for_request() : linger();
}

/// Lets the client read the answer before the connection goes: bytes that nobody reads would make
/// the system reset it.
void Session::linger() {
  phase_ = Phase::linger;
  error_code ec;
  socket_.shutdown(tcp::socket::shutdown_send, ec);
  if (ec) return close();
  arm(kLingerSeconds);
  if (reading_) return;  // what reads goes on with it
  empty_buffer();
  discard();
}

void Session::discard() {
  socket_.async_read_some(buffer_.prepare(16 << 10),
                          [self = shared_from_this()](error_code ec, std::size_t n) {
                            self->discarded_ += n;
                            const bool enough = self->discarded_ > (std::size_t{64} << 20);
                            if (ec || enough || self->phase_ != Phase::linger) return self->close();
                            self->discard();
                          });
}

}  // namespace toto::server
