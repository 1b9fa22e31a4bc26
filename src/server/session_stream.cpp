// SPDX-License-Identifier: Apache-2.0
// How a session reads a body piece by piece, while it answers.
#include <fmt/format.h>

#include "server/session.h"

namespace toto::server {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kPiece = std::size_t{64} << 10;

}  // namespace

void Session::read(std::function<void(BodyPiece)> take) {
  boost::asio::post(socket_.get_executor(),
                    [self = shared_from_this(), t = std::move(take)]() mutable {
                      self->read_piece(std::move(t));
                    });
}

void Session::read_piece(std::function<void(BodyPiece)> take) {
  if (phase_ == Phase::closed || phase_ == Phase::linger || !stream_ || reading_) {
    return take({{}, true, "cancelled", "the client has gone"});
  }
  if (stream_->is_done()) return take({{}, true, {}, {}});
  read_take_ = std::move(take);
  piece_.resize(kPiece);
  auto& body = stream_->get().body();
  body.data = piece_.data();
  body.size = piece_.size();
  body.more = true;
  reading_ = true;
  read_timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(owner_->options.body_seconds)));
  read_timer_.async_wait([self = shared_from_this()](error_code ec) {
    if (ec || !self->read_take_) return;
    std::exchange(self->read_take_, {})(
        {{},
         true,
         "body_timeout",
         fmt::format("expected more of the body within {} s", self->owner_->options.body_seconds)});
  });
  http::async_read_some(
      socket_, buffer_, *stream_,
      [self = shared_from_this()](error_code ec, std::size_t) { self->have_piece(ec); });
}

void Session::have_piece(error_code ec) {
  reading_ = false;
  read_timer_.cancel();
  if (phase_ == Phase::linger) {
    empty_buffer();
    return discard();
  }
  if (!read_take_) return;
  BodyPiece piece;
  if (ec == http::error::need_buffer) ec = {};
  if (!ec) {
    piece.bytes.assign(piece_.data(), piece_.size() - stream_->get().body().size);
    piece.last = stream_->is_done();
  } else {
    static const auto& http_errors = http::make_error_code(http::error::bad_method).category();
    const bool cut = ec == http::error::partial_message || ec == http::error::end_of_stream;
    piece.last = true;
    piece.wrong = cut                            ? "incomplete_body"
                  : ec.category() == http_errors ? "invalid_http"
                                                 : "cancelled";
    piece.message = cut ? "the connection ended within the body" : ec.message();
  }
  std::exchange(read_take_, {})(std::move(piece));
}

bool Session::keep(std::size_t bytes) {
  if (bytes > held_) return hold(bytes);
  owner_->held.fetch_sub(held_ - bytes);
  held_ = bytes;
  return true;
}

}  // namespace toto::server
