import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct LogInTests {
  @Test("A password comes from the option, a file, a variable or a person, in this order")
  func passwords() throws {
    let folder = try TemporaryFolder()
    let file = ("--password-file", try folder.write(Array("from file\r\nsecond line".utf8), to: "file"))
    let variables = ["V": "from variable"]
    let make = { (text: String, file: (String, String)?, variables: [String: String], typed: String?) in
      try LogIn(text, option: "--user", file: file, variable: "V", environment: variables) { _ in typed }
    }
    #expect(try make("me:", nil, variables, "typed") == LogIn(user: "me", password: ""))
    #expect(try make("me:a:b", nil, variables, "typed") == LogIn(user: "me", password: "a:b"))
    #expect(try make("me", file, variables, "typed") == LogIn(user: "me", password: "from file"))
    #expect(try make("me", nil, variables, "typed") == LogIn(user: "me", password: "from variable"))
    #expect(try make("me", nil, [:], "typed") == LogIn(user: "me", password: "typed"))
    #expect { try make("me", nil, [:], nil) } throws: { "\($0)".contains("--password-file") && "\($0)".contains("V") }
  }

  @Test("Text about a log-in is without the password")
  func description() throws {
    let logIn = LogIn(user: "me", password: "hunter2")
    let settings = NetworkSettings(
      proxy: .url("http://me:hunter2@p:1"), proxyLogIn: logIn,
      logIn: LogInSettings(logIn: logIn, bearerToken: "hunter2"))
    var plan = try GetPlan(urls: ["http://me:hunter2@a/1?token=hunter2"], header: ["X-Api-Key: hunter2"])
    plan.logsIn = true
    let interceptor = try #require(LogInInterceptor(LogInSettings(bearerToken: "hunter2")))
    var text = "\(logIn) \([logIn]) \(settings.logIn) \(settings) \(plan) \(interceptor)"
    text += String(reflecting: PipelineSettings(network: settings, directory: "/d"))
    dump((logIn, settings, interceptor), to: &text)
    #expect(!text.contains("hunter2") && text.contains("me"), "\(text)")
  }

  private static let field = "Basic bWU6d29yZA=="

  @Test(
    "User information and --header win",
    arguments: [
      ("http://a.test/1", nil, field), ("https://a.test:8443/1", nil, field), ("http://@a.test/1", nil, field),
      ("http://you@a.test/1", nil, nil), ("http://you:word@a.test/1", nil, nil), ("http://:word@a.test/1", nil, nil),
      ("http://a.test/1", "Own", "Own"),
    ] as [(String, String?, String?)])
  func precedence(url: String, given: String?, sent: String?) throws {
    let interceptor = try #require(LogInInterceptor(LogInSettings(logIn: LogIn(user: "me", password: "word"))))
    var download = DownloadRequest(try #require(URL(string: url)))
    download.logsIn = true
    let request = SourceRequest(
      url: download.url, headers: given.map { ["Authorization": $0] } ?? [:], metadata: download.metadata)
    #expect(interceptor.authorized(request).headers["Authorization"] == sent)
  }

  @Test("A mirror on another origin gets nothing")
  func mirrors() throws {
    let interceptor = try #require(LogInInterceptor(LogInSettings(bearerToken: "t")))
    var download = try DownloadRequest("https://a.test/1")
    download.logsIn = true
    func sent(_ url: String, _ metadata: [String: String]) throws -> String? {
      let request = SourceRequest(url: try #require(URL(string: url)), metadata: metadata)
      return interceptor.authorized(request).headers["Authorization"]
    }
    #expect(try sent("https://a.test/other", download.metadata) == "Bearer t")
    for url in ["https://b.test/1", "http://a.test/1", "https://a.test:444/1"] {
      #expect(try sent(url, download.metadata) == nil, "\(url)")
    }
    #expect(try sent("https://a.test/1", [:]) == nil, "a download of another command")
    var named = SourceRequest(url: download.url, metadata: download.metadata)
    named.isNamedByServer = true
    #expect(interceptor.authorized(named).headers["Authorization"] == nil, "a server has named the place")
  }

  @Test("Other origins than the known ones get nothing")
  func origins() throws {
    var settings = LogInSettings(bearerToken: "t")
    settings.origins = [try #require(Origin("https://a.test"))]
    let interceptor = try #require(LogInInterceptor(settings))
    let sent = try ["https://a.test/1", "http://a.test/1", "https://a.test:444/1", "https://b.test/1"].map {
      interceptor.authorized(SourceRequest(url: try #require(URL(string: $0)))).headers["Authorization"]
    }
    #expect(sent == ["Bearer t", nil, nil, nil])
  }

  @Test("Methods that ask the server first are up to the source")
  func methods() {
    let logIn = LogIn(user: "me", password: "word")
    #expect(LogInInterceptor(LogInSettings(logIn: logIn, method: .digest)) == nil)
    #expect(LogInInterceptor(LogInSettings(logIn: logIn, method: .any)) == nil)
    #expect(LogInInterceptor(LogInSettings()) == nil)
  }

  @Test("The origins of a list are known in advance")
  func givenOrigins() async throws {
    let folder = try TemporaryFolder()
    let list = try folder.write(Array("https://b.test/1\n# comment\nnot a URL\nhttps://b.test/2\n".utf8), to: "list")
    let plan = try GetPlan(urls: ["http://a.test/x"], inputFile: list)
    #expect(try await LogInOrigins.given(plan) == Set(["http://a.test", "https://b.test"].compactMap { Origin($0) }))
    let pipe = try GetPlan(urls: [], inputFile: "-")
    await #expect(throws: UsageError.self) { try await LogInOrigins.given(pipe) }
  }

  @Test("A request says that it needs a log-in, and not which")
  func mark() throws {
    var plan = try GetPlan(urls: ["http://a.test/1"])
    #expect(try !plan.request(for: "http://a.test/1").logsIn)
    plan.logsIn = true
    #expect(try plan.request(for: "http://a.test/1").logsIn)
  }
}
