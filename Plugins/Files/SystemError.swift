import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the operating system said when a call failed.
struct SystemError: Error, Hashable {
  /// The number, as `errno` had it.
  let code: CInt

  /// Keeps a number.
  init(_ code: CInt) { self.code = code }

  /// The number of the call that has just failed on this thread.
  static var current: SystemError { SystemError(errno) }

  /// Whether it says that there is nothing at the path.
  var isAbsence: Bool { code == ENOENT || code == ENOTDIR }

  /// Whether it says that there are no files without a name: the file system has none, or the kernel takes the attempt
  /// for opening a folder.
  var saysNoUnnamedFiles: Bool { [EOPNOTSUPP, ENOTSUP, EISDIR, EINVAL, ENOSYS].contains(code) }

  /// Whether it says that a file cannot have a second name here.
  var saysNoHardLinks: Bool { [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(code) }

  /// The kind of failure: the one table from numbers to codes.
  var downloadCode: DownloadError.Code {
    switch code {
    case ENOSPC, EDQUOT, EFBIG: .noSpace
    case EACCES, EPERM, EROFS, EISDIR, ENOTDIR: .permission
    case EMFILE, ENFILE: .tooManyOpenFiles
    default: .storage
    }
  }

  /// What somebody can do about it.
  private var advice: String {
    switch code {
    case ENOSPC: "free some space and start the download again; what was received is kept"
    case EDQUOT: "the quota is used up: delete something or have it raised, then start the download again"
    case EFBIG: "the file system or the process limit does not allow files of this size: choose another folder"
    case EACCES, EPERM: "choose another folder, or change its owner or its permissions"
    case EROFS: "the file system is mounted read-only: choose another folder"
    case EISDIR: "a folder is in the way: choose another name"
    case ENOTDIR: "a file stands where a folder is needed: choose another folder, or move the file away"
    case EMFILE, ENFILE: "too many files are open: run fewer downloads at once, or raise the limit (ulimit -n)"
    case EIO: "the device failed: check the disk before starting the download again"
    case ENAMETOOLONG: "choose a shorter name or a folder with a shorter path"
    case ENOENT: "something has removed it meanwhile: start the download again"
    default: "look at the file system, then start the download again"
    }
  }

  /// The failure as the pipeline reports it: `could not write /a/b: No space left on device; free some space …`.
  ///
  /// - Parameters:
  ///   - action: what was tried, in the infinitive: `write`.
  ///   - path: what it was tried on.
  func downloadError(_ action: String, _ path: String) -> DownloadError {
    DownloadError(
      downloadCode, "could not \(action) \(path): \(String(cString: strerror(code))); \(advice)", cause: self)
  }
}

/// Runs calls and reports what they throw as failures of `action` on `path`.
func reporting<Value, Failure: Error>(
  _ action: String, _ path: @autoclosure () -> String, _ body: () throws(Failure) -> Value
) throws -> Value {
  do {
    return try body()
  } catch let error as SystemError {
    throw error.downloadError(action, path())
  }
}
