import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

/// An option works, or is refused with an error that names it; what is told is in effect.
@Suite(.endsHangs)
struct OptionUseTests {
  private let gid = "1100000000000001"
  private let url: JSONValue = "https://example.org/a"

  private static let withoutEffect = [
    ("http-proxy", "http://127.0.0.1:3128"), ("https-proxy", "127.0.0.1:3128"), ("ftp-proxy", "127.0.0.1:3128"),
    ("all-proxy", "http://127.0.0.1:3128"), ("all-proxy-user", "me"), ("all-proxy-passwd", "secret"),
    ("no-proxy", "example.org"), ("proxy-method", "tunnel"), ("allow-overwrite", "true"),
    ("auto-file-renaming", "false"),
    ("lowest-speed-limit", "1K"), ("remote-time", "true"), ("conditional-get", "true"), ("hash-check-only", "true"),
    ("timeout", "10"), ("connect-timeout", "10"), ("ftp-user", "me"), ("ssh-host-key-md", "sha-1=00"),
    ("select-file", "1-2"), ("metalink-language", "de"), ("http-no-cache", "true"), ("http-auth-challenge", "true"),
  ]

  @Test("an option without an effect is refused by name", arguments: withoutEffect + [("dry-run", "true")])
  func refused(_ name: String, _ value: String) async throws {
    let fixture = try await RPCFixture()
    let start = "We encountered a problem while processing the option '--\(name)'. It "
    let message = await fixture.failure("aria2.addUri", [url], .object([name: .string(value)]))
    #expect(message?.hasPrefix(start) == true, "\(message ?? "accepted")")
    let ofAll = await fixture.failure("aria2.changeGlobalOption", .object([name: .string(value)]))
    // Like aria2, it leaves this one out.
    if name != "select-file" { #expect(ofAll == message) }
    let counts = try await fixture.downloader.counts()
    #expect(counts.isEmpty)
    #expect(fixture.aria2.settings.value.options == [:])
    await fixture.downloader.shutdown()
  }

  @Test("an option without an effect is refused for a download that exists", arguments: withoutEffect)
  func refusedChange(_ name: String, _ value: String) async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(gid)
    let before = try await fixture.request(gid)
    let message = await fixture.failure("aria2.changeOption", .string(gid), .object([name: .string(value)]))
    #expect(message?.contains("'--\(name)'") == true, "\(message ?? "accepted")")
    #expect(try await fixture.request(gid) == before)
    await fixture.downloader.shutdown()
  }

  @Test("a refusal says what is in effect")
  func reasons() async throws {
    let fixture = try await RPCFixture()
    let start = "We encountered a problem while processing the option"
    let flag = await fixture.failure("aria2.addUri", [url], ["dry-run": "true"])
    #expect(flag == "\(start) '--dry-run'. It is “false” here and cannot be changed.")
    let proxy = await fixture.failure("aria2.addUri", [url], ["http-proxy": "http://me:secret@127.0.0.1"])
    #expect(proxy == "\(start) '--http-proxy'. It cannot be set here.")
    await fixture.downloader.shutdown()
  }

  @Test("all values in effect are accepted, and kept nowhere")
  func inEffect() async throws {
    let fixture = try await RPCFixture()
    var options: [String: JSONValue] = ["pause": "true", "gid": .string(gid)]
    for option in Aria2Option.all.values where option.use != .applied {
      if let standard = option.standard { options[option.name] = .string(standard) }
      if option.kind == .text { options[option.name] = "" }
    }
    _ = try await fixture.value("aria2.addUri", [url], .object(options))
    _ = try await fixture.value("aria2.changeOption", .string(gid), .object(options))
    options["gid"] = nil
    _ = try await fixture.value("aria2.changeGlobalOption", .object(options))
    let request = try #require(try await fixture.request(gid))
    #expect(RequestOptions.given(request) == [:])
    #expect(fixture.aria2.settings.value.options == [:])
    await fixture.downloader.shutdown()
  }

  @Test("what does not depend on an option is told as it is here")
  func inner() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(gid, ["file-allocation": "falloc", "always-resume": "false", "split": "3"])
    let told = try await fixture.value("aria2.getOption", .string(gid))
    #expect(told["file-allocation"]?.text == "none" && told["always-resume"]?.text == "true")
    #expect(told["split"]?.text == "3")
    await fixture.downloader.shutdown()
  }

  @Test("what an earlier version kept without an effect is not told")
  func earlier() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(gid)
    _ = try await fixture.downloader.update(DownloadID(gid)) {
      RequestOptions.give(["http-proxy": "http://p", "dry-run": "true", "referer": "r"], to: &$0, over: [:])
    }
    _ = try await fixture.aria2.settings.update { $0.options = ["all-proxy": "http://p", "split": "3"] }
    let told = try await fixture.value("aria2.getOption", .string(gid))
    #expect(told["http-proxy"] == nil && told["all-proxy"] == nil && told["dry-run"]?.text == "false")
    #expect(told["referer"]?.text == "r" && told["split"]?.text == "3")
    let ofAll = try await fixture.value("aria2.getGlobalOption")
    #expect(ofAll["all-proxy"] == nil && ofAll["split"]?.text == "3")
    await fixture.downloader.shutdown()
  }

  @Test("the server says what is in effect")
  func server() async throws {
    let fixture = try await RPCFixture {
      $0.options = ["allow-overwrite": "true", "lowest-speed-limit": "1024", "connect-timeout": "30"]
    }
    let told = try await fixture.value("aria2.getGlobalOption")
    #expect(told["allow-overwrite"]?.text == "true" && told["lowest-speed-limit"]?.text == "1024")
    try await fixture.add(gid, ["allow-overwrite": "true", "lowest-speed-limit": "1K", "connect-timeout": "30"])
    // The standard of a number asks for nothing; that of a flag asks that a file is kept.
    _ = try await fixture.value(
      "aria2.changeOption", .string(gid), ["lowest-speed-limit": "0", "connect-timeout": "60"])
    let message = await fixture.failure("aria2.addUri", [url], ["allow-overwrite": "false"])
    #expect(message?.hasSuffix("'--allow-overwrite'. It is “true” here and cannot be changed.") == true)
    await fixture.downloader.shutdown()
  }

  @Test("a header field with a line break is refused")
  func lineBreaks() async throws {
    let fixture = try await RPCFixture()
    for value in ["A: b\nEvil: c", ["A: b\nEvil: c"], ["A: b\r\nEvil: c"], ["A: b\rEvil: c"]] as [JSONValue] {
      #expect(await fixture.failure("aria2.addUri", [url], ["header": value]) != nil, "\(value)")
    }
    try await fixture.add(gid, ["header": "A: b\nC: d\n"])
    let fields = try await fixture.request(gid)?.headers.fields
    #expect(fields == [HeaderField("A", "b"), HeaderField("C", "d")])
    await fixture.downloader.shutdown()
  }

  // MARK: The time of a file

  private func selectsTime(_ fixture: RPCFixture) async throws -> Bool {
    try #require(try await fixture.request(gid)).steps.contains(RequestOptions.timeStep)
  }

  private func told(_ fixture: RPCFixture) async throws -> String? {
    try await fixture.value("aria2.getOption", .string(gid))["remote-time"]?.text
  }

  @Test("remote-time selects the step that sets the time", arguments: ["true", "false"])
  func remoteTime(_ value: String) async throws {
    let fixture = try await RPCFixture(hasTimeStep: true) {
      $0.options["remote-time"] = "false"
      $0.prepare = { $0.steps = .only("VerifyChecksum") }
    }
    try await fixture.add(gid, ["remote-time": .string(value)])
    #expect(try await selectsTime(fixture) == (value == "true"))
    #expect(try await told(fixture) == value)
    #expect(try await fixture.request(gid)?.steps.contains("VerifyChecksum") == true)
    for changed in ["true", "false", "true"] {
      _ = try await fixture.value("aria2.changeOption", .string(gid), ["remote-time": .string(changed)])
      #expect(try await selectsTime(fixture) == (changed == "true"))
      #expect(try await told(fixture) == changed)
    }
    _ = try await fixture.value("aria2.unpause", .string(gid))
    try await fixture.downloader.waitUntilIdle()
    #expect(try await fixture.state(gid) == "complete")
    await fixture.downloader.shutdown()
  }

  @Test("remote-time for all holds for later downloads")
  func remoteTimeForAll() async throws {
    let fixture = try await RPCFixture(hasTimeStep: true) {
      $0.options["remote-time"] = "false"
      $0.prepare = { $0.steps = .only("VerifyChecksum") }
    }
    _ = try await fixture.value("aria2.changeGlobalOption", ["remote-time": "true"])
    try await fixture.add(gid)
    #expect(try await selectsTime(fixture))
    #expect(try await told(fixture) == "true")
    await fixture.downloader.shutdown()
  }

  @Test("a pipeline that sets the time of all files says so, and a client can leave it out")
  func allSteps() async throws {
    let fixture = try await RPCFixture(hasTimeStep: true)
    #expect(try await fixture.value("aria2.getGlobalOption")["remote-time"]?.text == "true")
    try await fixture.add(gid)
    #expect(try await selectsTime(fixture))
    #expect(try await told(fixture) == "true")
    _ = try await fixture.value("aria2.changeOption", .string(gid), ["remote-time": "false"])
    #expect(try await !selectsTime(fixture))
    #expect(try await told(fixture) == "false")
    #expect(try await fixture.request(gid)?.steps.contains("VerifyChecksum") == true)
    await fixture.downloader.shutdown()
  }
}
