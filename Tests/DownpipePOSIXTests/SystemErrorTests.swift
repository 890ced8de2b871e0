import DownpipeCore
import DownpipePOSIX
import HangLimit
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.endsHangs)
struct SystemErrorTests {
  /// One row per error: its name, its code, and the advice.
  static let table: [(CInt, DownloadError.Code, String)] = [
    (ENOSPC, .noSpace, "free some space"), (EDQUOT, .noSpace, "quota"), (EFBIG, .noSpace, "files of this size"),
    (EACCES, .permission, "permissions"), (EPERM, .permission, "permissions"),
    (EROFS, .permission, "mounted read-only"), (EISDIR, .permission, "a folder has this name"),
    (ENOTDIR, .permission, "a file has the name of a folder"),
    (EMFILE, .tooManyOpenFiles, "ulimit -n"), (ENFILE, .tooManyOpenFiles, "ulimit -n"),
    (EIO, .storage, "check the disk"), (ENAMETOOLONG, .storage, "shorter name"), (ENOENT, .storage, "removed it"),
    (ESTALE, .storage, "check the mount"), (ETIMEDOUT, .storage, "check the mount"),
    (EBADF, .storage, "check the file system"), (EINVAL, .storage, "check the file system"),
  ]

  @Test(arguments: table.indices)
  func eachErrorHasItsCodeAndAdvice(_ index: Int) throws {
    let (number, code, advice) = Self.table[index]
    let error = SystemError(number).downloadError("write", "/a/b")
    #expect(error.code == code)
    let parts = error.message.split(separator: "; ", maxSplits: 1)
    #expect(parts.first == "could not write /a/b: \(String(cString: strerror(number)))")
    #expect(parts.last?.contains(advice) == true)
    #expect(error.cause as? SystemError == SystemError(number))
  }

  @Test func onlyErrorsOutsideOfTheTableTakeAnotherCode() {
    #expect(SystemError(EINVAL).downloadCode(otherwise: .network) == .network)
    #expect(SystemError(EMFILE).downloadCode(otherwise: .network) == .tooManyOpenFiles)
    #expect(SystemError(EACCES).downloadError("read", "/a", otherwise: .network).code == .permission)
  }

  @Test func reportingKeepsOtherErrors() {
    #expect(throws: CancellationError.self) { try reporting("read", "/a") { throw CancellationError() } }
    let error = #expect(throws: DownloadError.self) { try reporting("read", "/a") { throw SystemError(EROFS) } }
    #expect(error?.code == .permission)
  }
}
