import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct RedirectsTests {
  private static func redirects(
    _ url: String, _ fields: HeaderFields = [], maximum: Int = 10, allowsInsecure: Bool = false
  ) throws -> Redirects {
    try Redirects(
      SourceRequest(url: try #require(URL(string: url))), fields: fields,
      rules: .init(maximum: maximum, allowsInsecure: allowsInsecure))
  }

  @Test(arguments: [
    ("ftp://h/", DownloadError.Code.unsupportedURL), ("file:///etc/passwd", .unsupportedURL), ("x", .unsupportedURL),
    ("http:///x", .invalidRequest), ("http:/x", .invalidRequest), ("http://h:0/", .invalidRequest),
    ("http://h:65536/", .invalidRequest), ("http://h:99999999999999999999/", .invalidRequest),
    ("http://a%20b/", .invalidRequest), ("http://a%00b/", .invalidRequest),
    ("http://\(String(repeating: "a", count: 254))/", .invalidRequest),
  ])
  func notRequested(_ url: String, _ code: DownloadError.Code) throws {
    let error = #expect(throws: DownloadError.self) { _ = try Self.redirects(url) }
    #expect(error?.code == code)
  }

  @Test(arguments: [
    ("https://a.test/", "http://a.test/", DownloadError.Code.insecureRedirect),
    ("https://a.test/", "HTTP://b", .insecureRedirect),
    ("http://a.test/", "file:///etc/passwd", .unsupportedURL), ("http://a.test/", "ftp://a.test/x", .unsupportedURL),
    ("http://a.test/", "mailto:a@b", .unsupportedURL), ("http://a.test/", "ht3p://localhost/", .unsupportedURL),
    ("http://a.test/", "gopher://www.example.co.uk", .unsupportedURL), ("http://a.test/", "http://", .invalidResponse),
    ("http://a.test/", "http://b:0/", .invalidRequest), ("http://a.test/", "http://b:66666/", .invalidResponse),
    ("http://a.test/", "//a b/", .invalidResponse), ("http://a.test/", "//a\u{0}b/", .invalidResponse),
    ("http://a.test/", "/" + String(repeating: "a", count: 70_000), .invalidResponse),
  ])
  func notFollowed(_ from: String, _ location: String, _ code: DownloadError.Code) throws {
    var redirects = try Self.redirects(from)
    let error = #expect(throws: DownloadError.self) {
      _ = try redirects.follow(status: 301, headers: ["Location": location])
    }
    #expect(error?.code == code, "\(String(describing: error))")
    #expect(redirects.hops.isEmpty)
  }

  @Test(arguments: [
    (200, "/a"), (201, "/a"), (300, "/a"), (304, "/a"), (305, "/a"), (306, "/a"), (404, "/a"), (302, nil), (302, ""),
    (302, " \t"),
  ])
  func noRedirect(_ status: Int, _ location: String?) throws {
    var redirects = try Self.redirects("http://a.test/")
    let headers = location.map { HeaderFields([HeaderField("location", $0)]) } ?? []
    #expect(try redirects.follow(status: status, headers: headers) == false)
  }

  @Test(arguments: [301, 302, 303, 307, 308])
  func redirect(_ status: Int) throws {
    var redirects = try Self.redirects("http://a.test/x?y#z")
    #expect(try redirects.follow(status: status, headers: ["Location": "b#c"]))
    #expect(redirects.url.absoluteString == "http://a.test/b")
    #expect(try redirects.follow(status: status, headers: ["Location": "//B.test:80/caf\u{E9}"]))
    #expect(redirects.hops.map(\.absoluteString) == ["http://a.test/b", "http://b.test/caf%E9"])
    #expect(redirects.url == redirects.hops.last)
  }

  @Test func severalLocations() throws {
    var redirects = try Self.redirects("http://a.test/")
    #expect(try redirects.follow(status: 302, headers: ["Location": "/x", "location": " /x"]))
    let error = #expect(throws: DownloadError.self) {
      _ = try redirects.follow(status: 302, headers: ["Location": "/x", "location": "/y"])
    }
    #expect(error?.code == .invalidResponse)
  }

  @Test(arguments: [0, 1, 3])
  func limit(_ maximum: Int) throws {
    var redirects = try Self.redirects("http://a.test/0", maximum: maximum)
    for number in 0..<maximum { #expect(try redirects.follow(status: 302, headers: ["Location": "/\(number + 1)"])) }
    guard maximum > 0 else {
      // The redirect is the answer.
      return #expect(try redirects.follow(status: 302, headers: ["Location": "/"]) == false)
    }
    let error = #expect(throws: DownloadError.self) {
      _ = try redirects.follow(status: 302, headers: ["Location": "/next"])
    }
    #expect(error?.code == .tooManyRedirects)
    #expect(error?.message.contains("loop") == false)
  }

  /// A server may set a cookie, or wait for a file, with a redirect to the same URL: only the limit ends a loop.
  @Test func loop() throws {
    var redirects = try Self.redirects("http://a.test/x", maximum: 3)
    for _ in 0..<3 { #expect(try redirects.follow(status: 302, headers: ["Location": "/x?token=secret"])) }
    let error = #expect(throws: DownloadError.self) {
      _ = try redirects.follow(status: 302, headers: ["Location": "/x?token=secret"])
    }
    #expect(error?.message.contains("loop") == true)
    #expect(error?.message.contains("secret") == false)
  }

  @Test func insecure() throws {
    var redirects = try Self.redirects("https://a.test/", ["Authorization": "x"], allowsInsecure: true)
    #expect(try redirects.follow(status: 302, headers: ["Location": "http://a.test/"]))
    #expect(redirects.fields.isEmpty)
  }

  // MARK: Secrets

  private static let fields = HeaderFields([
    HeaderField("Authorization", "a"), HeaderField("cookie", "c"), HeaderField("X-Key", "k"), HeaderField("Host", "h"),
    HeaderField("Referer", "r"), HeaderField("Range", "bytes=1-"), HeaderField("If-Range", "\"e\""),
    HeaderField("User-Agent", "u"), HeaderField("accept", "*/*"), HeaderField("X-All", "x", scope: .everywhere),
  ])
  private static let everywhere = ["Range", "If-Range", "User-Agent", "accept", "X-All"]

  @Test(arguments: [
    ("https://a.test/y", true), ("https://A.test:443/y", true), ("/y", true), ("//a.test/y", true),
    ("https://a.test:444/", false), ("https://b.test/", false), ("https://sub.a.test/", false),
    ("https://a.test./", false), ("https://a.test@b.test/", false), ("https://b.test\\@a.test/", false),
  ])
  func fieldsAreBound(_ location: String, _ stay: Bool) throws {
    var redirects = try Self.redirects("https://a.test/x", Self.fields)
    #expect(redirects.fields == Self.fields)
    #expect(try redirects.follow(status: 307, headers: ["Location": location]))
    #expect(redirects.fields.fields.map(\.name) == (stay ? Self.fields.fields.map(\.name) : Self.everywhere))
    // Back at the origin they are sent again.
    #expect(try redirects.follow(status: 307, headers: ["Location": "https://a.test/z"]))
    #expect(redirects.fields == Self.fields)
  }

  @Test func fieldOfAnotherOrigin() throws {
    let cdn = try #require(Origin("https://cdn.test"))
    let fields = HeaderFields([HeaderField("X-Key", "k", scope: .origin(cdn)), HeaderField("Accept", "*/*")])
    var redirects = try Self.redirects("https://a.test/x", fields)
    #expect(redirects.fields.fields.map(\.name) == ["Accept"])
    #expect(try redirects.follow(status: 302, headers: ["Location": "https://cdn.test/x"]))
    // The first server would choose what the key is sent for.
    #expect(redirects.fields.fields.map(\.name) == ["Accept"])
    let asked = try Redirects(
      SourceRequest(url: try #require(URL(string: "https://cdn.test/x"))), fields: fields, rules: .init())
    #expect(asked.fields.fields.map(\.name) == ["X-Key", "Accept"])
  }

  @Test("A place that a server has named gets what is for everybody")
  func namedByAServer() throws {
    let origin = try #require(Origin("https://a.test"))
    let fields = HeaderFields([
      HeaderField("Authorization", "secret"), HeaderField("X-Key", "secret", scope: .origin(origin)),
      HeaderField("Accept", "*/*"), HeaderField("X-Client", "7", scope: .everywhere),
    ])
    let url = try #require(URL(string: "https://u:p@a.test/x"))
    var redirects = try Redirects(SourceRequest(url: url, isNamedByServer: true), fields: fields, rules: .init())
    for location in ["/y", "https://u:p@a.test/z", "https://b.test/", "https://a.test/x"] {
      #expect(redirects.fields.fields.map(\.name) == ["Accept", "X-Client"])
      #expect(redirects.userInfo == nil && !redirects.mayLogIn)
      #expect(try redirects.follow(status: 302, headers: ["Location": location]))
    }
  }

  @Test func userInformation() throws {
    var redirects = try Self.redirects("https://jo%40e:p%3A%E9@a.test/x")
    func check(_ expected: (String, String)?) {
      #expect(redirects.userInfo?.user == expected?.0)
      #expect(redirects.userInfo?.password == expected?.1)
    }
    check(("jo@e", "p:\u{E9}"))
    #expect(try redirects.follow(status: 302, headers: ["Location": "https://b.test/"]))
    check(nil)
    #expect(try redirects.follow(status: 302, headers: ["Location": "https://u@b.test/2"]))
    check(nil)
    #expect(redirects.url.absoluteString == "https://b.test/2")
    #expect(try redirects.follow(status: 302, headers: ["Location": "https://@a.test/3"]))
    check(("jo@e", "p:\u{E9}"))
    #expect(try redirects.follow(status: 302, headers: ["Location": "//b.test/4"]))
    check(nil)
    // Another origin does not choose who logs in; the origin itself may.
    #expect(try redirects.follow(status: 302, headers: ["Location": "https://you:too@a.test/5"]))
    check(("jo@e", "p:\u{E9}"))
    #expect(try redirects.follow(status: 302, headers: ["Location": "https://you:too@a.test/6"]))
    check(("you", "too"))
    #expect(!"\(redirects.hops)".contains("u@"))
    let secret = try Self.redirects("https://u:p4ss@a.test/x?token=p4ss", ["Authorization": "Bearer p4ss"])
    #expect(!"\(secret)".contains("p4ss") && "\(secret)".contains("a.test/x"))
  }

  @Test func fieldTakesPrecedence() throws {
    let redirects = try Self.redirects("https://u:p@a.test/x", ["Authorization": "Bearer x"])
    #expect(redirects.userInfo == nil)
    #expect(try Self.redirects("https://:@a.test/x").userInfo == nil)
    #expect(try Self.redirects("https://a.test/x").userInfo == nil)
  }
}
