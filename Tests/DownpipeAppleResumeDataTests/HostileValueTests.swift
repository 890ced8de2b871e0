import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeAppleResumeData

/// Invalid values and requests in valid lists.
@Suite(.endsHangs)
struct HostileValueTests {
  private static let base = HostileTests.base

  static let values: [(String, String)] = [
    ("NSURLSessionResumeBytesReceived", "<integer>-1</integer>"),
    ("NSURLSessionResumeBytesReceived", "<integer>9223372036854775808</integer>"),
    ("NSURLSessionResumeBytesReceived", "<integer>18446744073709551615</integer>"),
    ("NSURLSessionResumeBytesReceived", "<string>7</string>"),
    ("NSURLSessionResumeBytesReceived", "<real>7.5</real>"),
    ("NSURLSessionResumeBytesReceived", "<true/>"),
    ("NSURLSessionDownloadURL", "<string>file:///etc/passwd</string>"),
    ("NSURLSessionDownloadURL", "<string>ftp://example.org/a</string>"),
    ("NSURLSessionDownloadURL", "<string>javascript:alert(1)</string>"),
    ("NSURLSessionDownloadURL", "<string>https:///film</string>"),
    ("NSURLSessionDownloadURL", "<string>film.mkv</string>"),
    ("NSURLSessionDownloadURL", "<string></string>"),
    ("NSURLSessionDownloadURL", "<integer>7</integer>"),
    ("NSURLSessionResumeEntityTag", "<integer>7</integer>"),
    ("NSURLSessionResumeByteRange", "<array/>"),
    ("NSURLSessionResumeInfoVersion", "<integer>0</integer>"),
    ("NSURLSessionResumeInfoVersion", "<integer>5</integer>"),
    ("NSURLSessionResumeInfoVersion", "<string>2</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>../../etc/passwd</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>..</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>.</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string></string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>/etc/passwd</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>a/b</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>a\\b</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>a\nb</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<string>\(String(repeating: "a", count: 256))</string>"),
    ("NSURLSessionResumeInfoTempFileName", "<data></data>"),
    ("NSURLSessionResumeInfoLocalPath", "<string>/var/tmp/../../etc/passwd</string>"),
    ("NSURLSessionResumeInfoLocalPath", "<string>tmp/a</string>"),
    ("NSURLSessionResumeInfoLocalPath", "<string>/</string>"),
    ("NSURLSessionResumeInfoLocalPath", "<string>/tmp/.</string>"),
    ("NSURLSessionResumeInfoLocalPath", "<string>/\(String(repeating: "a/", count: 3000))</string>"),
    ("NSURLSessionResumeInfoLocalPath", "<integer>7</integer>"),
    ("NSURLSessionResumeCurrentRequest", "<string>a</string>"),
    ("NSURLSessionResumeCurrentRequest", "<data></data>"),
    ("NSURLSessionResumeOriginalRequest", "<data>AAAA</data>"),
  ]

  @Test("an invalid value is refused", arguments: values)
  func impossibleValues(_ key: String, _ value: String) {
    let rest = [
      "NSURLSessionDownloadURL": "<string>https://example.org/</string>",
      "NSURLSessionResumeBytesReceived": "<integer>7</integer>",
    ].filter { $0.key != key }
    let list = HostileTests.xml(rest.map { "<key>\($0.key)</key>\($0.value)" }.joined() + "<key>\(key)</key>\(value)")
    let error = failure(list)
    #expect(error?.code == .resumeData)
    // The same value as an object in an archive.
    let archived = HostileTests.dictionary(
      keys: (3..<6).map(Samples.uid).joined(), values: (6..<9).map(Samples.uid).joined(),
      "<string>\(key)</string>", "<string>\(rest.first?.key ?? "A")</string>",
      "<string>\(rest.count > 1 ? rest.dropFirst().first?.key ?? "" : "B")</string>",
      value, rest.first?.value ?? "<true/>", rest.dropFirst().first?.value ?? "<true/>")
    #expect(failure(archived)?.code == .resumeData)
  }

  static let requests: [(String, String)] = [
    ("no archive", Samples.list(base)),
    (
      "another class",
      Samples.request(.named).replacing("<string>NSURLRequest</string>", with: "<string>NSURL</string>")
    ),
    (
      "another layout",
      Samples.request(.numbered).replacing("<key>$0</key><integer>2<", with: "<key>$0</key><integer>1<")
    ),
    ("no layout", Samples.request(.numbered).replacing("<key>$0</key>", with: "<key>x</key>")),
    ("a huge count", Samples.request(.named).replacing("<integer>16<", with: "<integer>9223372036854775807<")),
    ("a negative count", Samples.request(.named).replacing("<integer>16<", with: "<integer>-16<")),
    ("a file's URL", Samples.request(.named, url: "file:///etc/passwd")),
    ("no host", Samples.request(.numbered, url: "https:///a")),
    ("no URL", Samples.request(.numbered).replacing("<key>NS.relative</key>", with: "<key>x</key>")),
    (
      "a URL relative to itself",
      Samples.request(.named).replacing(
        "<key>NS.base</key>\(Samples.uid(0))", with: "<key>NS.base</key>\(Samples.uid(3))")
    ),
    (
      "a root out of range",
      Samples.request(.named).replacing(Samples.uid(1) + "</dict>", with: Samples.uid(99) + "</dict>")
    ),
    (
      "header fields that are a string",
      Samples.request(.named, headers: [("A", "b")]).replacing("<key>NS.keys</key>", with: "<key>x</key>")
    ),
    (
      "a header field named by the header fields",
      Samples.request(.named, headers: [("A", "bee")]).replacing(
        "<key>NS.keys</key><array>\(Samples.uid(12))", with: "<key>NS.keys</key><array>\(Samples.uid(17))")
    ),
    (
      "a header field that is data",
      Samples.request(.named, headers: [("A", "bee")]).replacing("<string>bee</string>", with: "<data/>")
    ),
    (
      "a header field that is the request",
      Samples.request(.named, headers: [("A", "bee")]).replacing(
        "<key>NS.objects</key><array>\(Samples.uid(13))", with: "<key>NS.objects</key><array>\(Samples.uid(1))")
    ),
  ]

  @Test("a damaged or hostile request is refused", arguments: requests)
  func damagedRequests(_ name: String, _ text: String) {
    #expect(failure(Samples.plain(request: text))?.code == .resumeData)
    #expect(failure(Samples.plain(original: text))?.code == .resumeData)
  }

  @Test("messages contain no secrets and no control characters")
  func messages() throws {
    let list = HostileTests.xml(
      """
      <key>NSURLSessionDownloadURL</key><string>ftp://me:hunter2@example.org/?token=hunter2</string>
      <key>NSURLSessionResumeBytesReceived</key><integer>7</integer>
      """)
    let message = try #require(failure(list)).message
    #expect(!message.contains("hunter2"))
    let name = HostileTests.xml(Self.base + "<key>NSURLSessionResumeInfoTempFileName</key><string>a\u{1B}[2J</string>")
    #expect(try #require(failure(name)).message.unicodeScalars.allSatisfy { $0.value >= 0x20 })
  }
}
