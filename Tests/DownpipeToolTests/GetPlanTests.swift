import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct GetPlanTests {
  private let url = "https://example.org/a.bin"

  @Test(
    "Errors of usage name the option and the cause",
    arguments: [
      (["u"], nil, "a/b", [], nil, "not a path"), (["u"], nil, "", [], nil, "not a file name"),
      (["u"], nil, "..", [], nil, "not a file name"),
      (["u"], nil, ".downpipe", [], nil, "ledger"),
      (["u"], nil, String(repeating: "x", count: 256), [], nil, "255 bytes"),
      (["u", "v"], nil, "name", [], nil, "one URL"), (["u"], "list", "name", [], nil, "one URL"),
      ([], nil, nil, [], nil, "no URL"), (["u"], nil, nil, ["Accept"], nil, "colon"),
      (["u"], nil, nil, ["Bad Name: x"], nil, "not a valid field"),
      (["u"], nil, nil, ["A: b\r\nC: d"], nil, "not a valid field"),
      (["u"], nil, nil, [": x"], nil, "not a valid field"), (["u", "v"], nil, nil, [], "md5=00", "one URL"),
      (["u"], nil, nil, [], "sha256", "ALGORITHM=HEX"), (["u"], nil, nil, [], "sha256=12", "64"),
      (["u"], nil, nil, [], "sha512/256=12", "algorithm"), (["u"], nil, nil, [], "md5=zz", "hexadecimal"),
    ] as [([String], String?, String?, [String], String?, String)])
  func usage(
    _ urls: [String], _ file: String?, _ name: String?, _ header: [String], _ checksum: String?, _ hint: String
  ) throws {
    let error = #expect(throws: UsageError.self) {
      try GetPlan(urls: urls, inputFile: file, outputName: name, header: header, checksum: checksum)
    }
    #expect(error?.description.contains(hint) == true, "\(error?.description ?? "")")
  }

  @Test("The value of a header is not repeated in an error")
  func secret() {
    let error = #expect(throws: UsageError.self) { try GetPlan(urls: [url], header: ["Authorization: s3cret\n"]) }
    #expect(error?.description.contains("s3cret") == false)
  }

  @Test("--user-agent and --referer set their fields, unless --header does")
  func namedFields() throws {
    let plan = try GetPlan(urls: [url], userAgent: "Mozilla/5.0", referer: "https://example.org/")
    let request = try plan.request(for: url)
    #expect(request.headers["User-Agent"] == "Mozilla/5.0" && request.headers["Referer"] == "https://example.org/")
    for header in ["user-agent: b", "Referer:"] {
      let error = #expect(throws: UsageError.self) {
        try GetPlan(urls: [url], header: [header], userAgent: "a", referer: "c")
      }
      #expect(error?.description.contains("remove one of them") == true)
    }
    let invalid = #expect(throws: UsageError.self) { try GetPlan(urls: [url], userAgent: "a\nb") }
    #expect(invalid?.description.contains("--user-agent") == true)
  }

  @Test("A request has all options")
  func request() throws {
    let digest = String(repeating: "ab", count: 32)
    let plan = try GetPlan(
      urls: [url], outputName: "b.bin", header: ["Accept:text/html", "X-Empty:", "X:  a: b"],
      checksum: "SHA256=\(digest)",
      steps: RequestSteps(gunzips: true, folder: "/films"))
    let request = try plan.request(for: url)
    #expect(request.url.absoluteString == url && request.givenURL == url)
    #expect(request.destination.name == "b.bin")
    #expect(
      request.headers.fields == [
        HeaderField("Accept", "text/html"), HeaderField("X-Empty", ""), HeaderField("X", "a: b"),
      ])
    #expect(request.expectedDigests.map(\.description) == ["sha-256=\(digest)"])
    #expect(RequestSteps(request) == RequestSteps(gunzips: true, folder: "/films"))
  }

  @Test("Mirrors are other URLs of one file, each once")
  func mirrors() throws {
    let mirrors = ["http://b.test/a", "HTTP://B.test/a", url, "https://c.test/a"]
    let plan = try GetPlan(urls: [url], mirrors: mirrors)
    let request = try plan.request(for: url)
    #expect(request.url.absoluteString == url)
    #expect(request.mirrors.map(\.absoluteString) == ["http://b.test/a", "https://c.test/a"])
    #expect(request.id == (try GetPlan(urls: [url]).request(for: url).id), "mirrors are not part of the identity")
  }

  @Test(
    "Mirrors that cannot be used are errors of usage",
    arguments: [
      ([], "list", "http://b.test/a", "one URL"), (["u", "v"], nil, "http://b.test/a", "one URL"),
      (["u"], nil, "b.test/a", "absolute URL"), (["u"], nil, "gopher://b.test/a", "scheme"),
      (["u"], nil, "gopher://u:s3cret@b.test/a", "scheme"),
    ] as [([String], String?, String, String)])
  func unusableMirrors(_ urls: [String], _ file: String?, _ mirror: String, _ hint: String) {
    let error = #expect(throws: UsageError.self) { try GetPlan(urls: urls, inputFile: file, mirrors: [mirror]) }
    let text = error?.description ?? ""
    #expect(text.hasPrefix("--mirror") && text.contains(hint) && !text.contains("s3cret"), "\(text)")
  }

  @Test(
    "A line of a list has a URL and, after tabs, its mirrors",
    arguments: [
      ("http://a/1\thttp://b/1\thttp://c/1", ["http://a/1", "http://b/1", "http://c/1"]),
      ("http://a/1 \t\t http://b/1 ", ["http://a/1", "http://b/1"]), ("\thttp://a/1\t", ["http://a/1"]),
      ("http://a/1\thttp://a/1", ["http://a/1"]), ("http://a/b c", ["http://a/b%20c"]),
    ])
  func lines(_ line: String, _ urls: [String]) throws {
    let plan = try GetPlan(urls: [], inputFile: "list")
    let request = try plan.request(for: line)
    #expect(([request.url] + request.mirrors).map(\.absoluteString) == urls)
    #expect(request.id == plan.id(for: line) && request.id == plan.id(for: request.givenURL))
    #expect(!request.givenURL.contains("\t"))
  }

  @Test("A line with an unusable mirror fails, and names it")
  func unusableMirrorInLine() throws {
    let plan = try GetPlan(urls: [], inputFile: "list")
    let error = #expect(throws: DownloadError.self) { try plan.request(for: "http://a/1\tgopher://u:s3cret@b.test/1") }
    #expect(error?.code == .unsupportedURL)
    #expect(error?.message.contains("b.test") == true && error?.message.contains("s3cret") == false)
  }

  @Test(
    "An unusable URL has a typed error",
    arguments: [
      "", "http:///file", " HTTPS:////a/b", "http://a/" + String(repeating: "b", count: 65_536), "nonsense",
      "gopher://example.org/a", "ftp:///a", "http://", "https:", "file:///etc/passwd", "/a/b", "mailto:a@example.org",
      "https://" + String(repeating: "a", count: 70_000),
    ])
  func unusable(_ text: String) throws {
    let plan = try GetPlan(urls: [text])
    let error = #expect(throws: DownloadError.self) { try plan.request(for: text) }
    #expect(error.map { [.unsupportedURL, .invalidRequest].contains($0.code) } == true)
    #expect(error.map { $0.message.count < 400 } == true)
  }

  @Test(
    "The request keeps the URL as it was typed",
    arguments: [
      "http://example.org/東京.jpg", "HTTP://Example.org/A", "http://example.org/a b", "http://example.org:80/%7Ea?q=1#f",
    ])
  func typed(_ text: String) throws {
    #expect(try GetPlan(urls: [text]).request(for: text).givenURL == text)
  }
}

@Suite(.endsHangs)
struct DownloadIdentityTests {
  @Test(
    "The id is the first 16 digits of SHA-256 over URL and name",
    arguments: [
      // printf 'URL\nNAME' | sha256sum | cut -c 1-16
      ("https://example.org/a.bin", nil, "4ad2faec61b4139d"),
      ("https://example.org/a.bin", "b.bin", "c6a1b3f65c643d31"), ("", nil, "01ba4719c80b6fe9"),
    ] as [(String, String?, String)])
  func stable(_ url: String, _ name: String?, _ id: String) {
    #expect(DownloadIdentity(url: url, outputName: name).id.rawValue == id)
  }

  @Test("An id converts back to its bits, leading zeros included", arguments: [0, 1, 0xDEAD_BEEF, UInt64.max])
  func roundTrip(_ bits: UInt64) {
    let identity = DownloadIdentity(bits: bits)
    #expect(identity.id.rawValue.count == 16)
    #expect(DownloadIdentity(identity.id) == identity)
  }

  @Test(
    "Ids of other programs are not read",
    arguments: ["", "abc", "0123456789abcdeg", "+123456789abcdef", "0123456789ABCDEF", "0123456789abcdef0"])
  func foreign(_ text: String) {
    #expect(DownloadIdentity(DownloadID(text)) == nil)
  }
}
