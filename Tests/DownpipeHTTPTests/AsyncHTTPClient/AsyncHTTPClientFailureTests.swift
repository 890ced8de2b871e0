#if AsyncHTTPClient
  import DownpipeCore
  import HangLimit
  import NIOCore
  import Testing

  @testable import DownpipeAsyncHTTPClient

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  @Suite(.endsHangs)
  struct AsyncHTTPClientFailureTests {
    @Test("a lack of descriptors is distinguished from a network error", arguments: [EMFILE, ENFILE])
    func descriptors(_ number: CInt) {
      let error = HTTPFailure.downloadError(IOError(errnoCode: number, reason: "socket"), received: nil)
      #expect((error as? DownloadError)?.code == .tooManyOpenFiles)
    }
  }
#endif
