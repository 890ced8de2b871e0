import DownpipeCore
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.timeLimit(.minutes(1)))
struct SystemErrorTests {
  @Test(arguments: [
    (ENOSPC, DownloadError.Code.noSpace), (EDQUOT, .noSpace), (EFBIG, .noSpace), (EACCES, .permission),
    (EPERM, .permission), (EROFS, .permission), (EISDIR, .permission), (ENOTDIR, .permission), (EIO, .storage),
    (EMFILE, .tooManyOpenFiles), (ENFILE, .tooManyOpenFiles), (ENAMETOOLONG, .storage), (ENOENT, .storage),
    (ESTALE, .storage),
  ])
  func numbersHaveTheirCode(_ number: CInt, _ code: DownloadError.Code) {
    let error = SystemError(number).downloadError("write", "/a/b")
    #expect(error.code == code)
    #expect(error.message.hasPrefix("could not write /a/b: "))
    #expect(error.message.contains("; "))
    #expect(error.cause as? SystemError == SystemError(number))
  }
}
