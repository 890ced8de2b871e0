package import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The `errno` value of a failed system call, and the one table that maps it to a ``DownloadError``.
package struct SystemError: Error, Hashable {
  /// The value of `errno`.
  package let code: CInt

  package init(_ code: CInt) { self.code = code }

  /// The error of the system call that just failed on this thread.
  package static var current: SystemError { SystemError(errno) }

  /// Whether the path does not exist.
  package var isAbsence: Bool { code == ENOENT || code == ENOTDIR }

  /// Whether the process or the system has too many open files.
  package var isShortageOfDescriptors: Bool { code == EMFILE || code == ENFILE }

  /// Whether the file system cannot create files without a name (`O_TMPFILE`). Kernels that do not know the flag take
  /// the call for opening a folder, hence `EISDIR`.
  package var saysNoUnnamedFiles: Bool { [EOPNOTSUPP, ENOTSUP, EISDIR, EINVAL, ENOSYS].contains(code) }

  /// Whether the file system cannot give a file a second name (a hard link).
  package var saysNoHardLinks: Bool { [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(code) }

  /// Whether the file system cannot rename an entry only if the new name is free, such as NFS.
  package var saysNoExclusiveRename: Bool { [EINVAL, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(code) }

  /// The table: the error code, and what the user can do. Errors that are not in it are `nil`.
  ///
  /// `.permission` stands for everything that fails again until a person changes a folder or a mount, so a read-only
  /// file system (`EROFS`) is in it, and so is a file where a folder is needed.
  private var row: (code: DownloadError.Code, advice: String)? {
    switch code {
    case ENOSPC: (.noSpace, "free some space, then resume the download: the received bytes are kept")
    case EDQUOT: (.noSpace, "the disk quota is used up: delete files or raise the quota, then resume the download")
    case EFBIG:
      (.noSpace, "the file system or the process limit does not allow files of this size: choose another folder")
    case EACCES, EPERM: (.permission, "choose another folder, or change its owner or permissions")
    case EROFS: (.permission, "the file system is mounted read-only: choose another folder, or mount it for writing")
    case EISDIR: (.permission, "a folder has this name: choose another name")
    case ENOTDIR:
      (.permission, "a file has the name of a folder in this path: choose another folder, or move the file away")
    case EMFILE, ENFILE:
      (.tooManyOpenFiles, "run fewer downloads at once, or raise the limit of open files (ulimit -n)")
    case EIO: (.storage, "the device failed: check the disk before you start the download again")
    case ENAMETOOLONG: (.storage, "choose a shorter name, or a folder with a shorter path")
    case ENOENT: (.storage, "another program removed it: start the download again")
    case ESTALE, ETIMEDOUT:
      (.storage, "the network file system lost the file or does not answer: check the mount, then resume the download")
    default: nil
    }
  }

  /// Whose fault it is: every file of this machine would meet a full disk, and a file system that is mounted read-only.
  private var scope: DownloadError.Scope { [ENOSPC, EDQUOT, EROFS].contains(code) ? .machine : .download }

  /// The kind of failure; `other` for errors that are not in the table.
  package func downloadCode(otherwise other: DownloadError.Code = .storage) -> DownloadError.Code { row?.code ?? other }

  /// The error that the pipeline reports: `could not write /a/b: No space left on device; free some space …`.
  ///
  /// - Parameters:
  ///   - action: The failed action, in the infinitive: `write`.
  ///   - path: The file or folder that the call was about.
  ///   - other: The code of errors that are not in the table.
  package func downloadError(
    _ action: String, _ path: String, otherwise other: DownloadError.Code = .storage
  ) -> DownloadError {
    let advice = row?.advice ?? "check the file system, then start the download again"
    return DownloadError(
      downloadCode(otherwise: other), "could not \(action) \(path): \(String(cString: strerror(code))); \(advice)",
      scope: scope, cause: self)
  }
}

/// Runs system calls and rethrows a `SystemError` as the `DownloadError` of `action` on `path`.
@discardableResult
package func reporting<Value, Failure: Error>(
  _ action: String, _ path: @autoclosure () -> String, _ body: () throws(Failure) -> Value
) throws -> Value {
  do {
    return try body()
  } catch let error as SystemError {
    throw error.downloadError(action, path())
  }
}
