import AppleFoundation
import DownpipeCore
import DownpipeURLSession
import Fixtures
import Testing

/// `URLSessionSource` as it is compiled for Apple's systems.
@Suite(.timeLimit(.minutes(5)))
struct ForegroundTests {
  private let host = "\(UUID().uuidString.lowercased()).example"
  private var url: URL { URL(string: "https://\(host)/a")! }

  @Test func aBodyIsPushed() async throws {
    var begun = Daemon.shared.begun(host).makeAsyncIterator()
    let session = try await URLSessionSource(.ephemeral).start(in: SourceContext())
    async let opened = session.open(SourceRequest(url: url))
    let task = try #require(await begun.next() as? URLSessionDataTask)
    #expect(task.session.configuration.kind == .ephemeral && task.session.configuration.urlCache == nil)
    #expect(task.session.delegateQueue.maxConcurrentOperationCount == 1)
    task.receive(200, ["Content-Length": "10", "ETag": "\"v1\""])
    let reply = try await opened
    #expect(reply.length == .known(10))
    async let bytes = reply.bytes()
    task.receive(Data("hello".utf8))
    task.receive(Data("world".utf8))
    task.end()
    #expect(try await bytes == Array("helloworld".utf8))
    await session.stop()
  }

  /// Apple's Foundation decodes fields as Latin-1.
  @Test func redirectsAreFollowedByOurRules() async throws {
    var begun = Daemon.shared.begun(host).makeAsyncIterator()
    let session = try await URLSessionSource(.default).start(in: SourceContext())
    async let opened = session.open(SourceRequest(url: url))
    let first = try #require(await begun.next() as? URLSessionDataTask)
    first.receive(302, ["Location": "/f\u{C3}\u{BC}r"])
    let second = try #require(await begun.next() as? URLSessionDataTask)
    #expect(second.originalRequest?.url?.absoluteString == "https://\(host)/f%C3%BCr")
    second.receive(200, ["Content-Length": "2"])
    let reply = try await opened
    async let bytes = reply.bytes()
    second.receive(Data("ok".utf8))
    second.end()
    #expect(try await bytes == Array("ok".utf8))
    await session.stop()
  }

  @Test(arguments: [
    (URLError.Code.timedOut, DownloadError.Code.timedOut), (.cannotFindHost, .hostNotFound),
    (.notConnectedToInternet, .offline), (.serverCertificateUntrusted, .tls), (.networkConnectionLost, .network),
    (.appTransportSecurityRequiresSecureConnection, .tls),
  ])
  func failures(_ error: URLError.Code, _ code: DownloadError.Code) async throws {
    var begun = Daemon.shared.begun(host).makeAsyncIterator()
    let session = try await URLSessionSource().start(in: SourceContext())
    async let failing = downloadError { try await session.open(SourceRequest(url: url)) }
    try #require(await begun.next()).end(URLError(error))
    #expect(await failing?.code == code)
    await session.stop()
  }
}
