import DownpipeCore
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct SessionGateTests {
  private func verdict(_ gate: SessionGate, _ tags: String...) async throws -> GateRule.Verdict {
    try #require(await GateWatch(gate).next()).verdict(for: Candidate(host: "example.org", tags: Set(tags)))
  }

  @Test func allDownloadsWaitForALogIn() async throws {
    let gate = SessionGate()
    #expect(try await verdict(gate, "anna") == .closed("SessionGate: no user is logged in"))
    gate.logIn()
    #expect(gate.isLoggedIn())
    #expect(try await verdict(gate, "anna") == .open)
    gate.logOut()
    #expect(try await verdict(gate) == .closed("SessionGate: no user is logged in"))
    gate.logIn("anna")
    #expect(try await verdict(gate, "anna", "film") == .open)
    #expect(try await verdict(gate, "film") == .closed("SessionGate: its user is logged out"))
  }

  @Test func onlyTheDownloadsOfUsersWait() async throws {
    let gate = SessionGate("Users", tagPrefix: "user:")
    #expect(gate.summary == "for downloads with tags user:…")
    #expect(try await verdict(gate, "film") == .open)
    #expect(try await verdict(gate, "user:anna") == .closed("Users: user:anna is logged out"))
    gate.logIn("user:anna")
    #expect(gate.isLoggedIn("user:anna") && !gate.isLoggedIn("user:bert") && !gate.isLoggedIn())
    #expect(try await verdict(gate, "user:anna", "film") == .open)
    #expect(try await verdict(gate, "user:bert", "film") == .closed("Users: user:bert is logged out"))
    #expect(try await verdict(gate, "user:bert", "user:anna") == .open, "one of its users is enough")
    gate.logOut("user:anna")
    #expect(
      try await verdict(gate, "user:bert", "user:anna")
        == .closed("Users: user:anna and user:bert are logged out"))
    gate.logIn("user:bert")
    gate.logIn()
    #expect(try await verdict(gate, "user:anna") == .open)
    gate.logOut()
    #expect(try await verdict(gate, "user:bert") == .closed("Users: user:bert is logged out"))
  }

  @Test("LYF: stop everything at log-out keeping resume state, go on at log-in")
  func logOutKeepsTheBytes() async throws {
    let bytes = [UInt8](repeating: 7, count: 300_000)
    let url = try #require(URL(string: "https://example.org/film"))
    let source = FakeSource([url: [.init(bytes).holding(after: 200_000), .init(bytes)]])
    let storage = FakeStorage()
    let sessions = SessionGate(tagPrefix: "user:")
    let downloader = try await Downloader {
      source
      storage
      sessions
    }
    sessions.logIn("user:anna")
    let download = try await downloader.add(
      DownloadRequest(url, tags: ["user:anna"]))
    let other = try await downloader.add(DownloadRequest(url, tags: ["user:bert"]))
    await source.held(atLeast: 1)
    sessions.logOut("user:anna")
    for await event in download.events {
      if case .state(.waiting(.gate(let id, let text))) = event.kind {
        #expect(id == "SessionGate" && text == "SessionGate: user:anna is logged out")
        break
      }
    }
    #expect(source.readers == 0)
    let received = try await download.status.progress.received
    #expect(received > 0)
    sessions.logIn("user:anna")
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(try await download.status.resumedFrom == received)
    let waiting = DownloadState.waiting(.gate(id: "SessionGate", text: "SessionGate: user:bert is logged out"))
    #expect(try await other.status.state == waiting)
    await downloader.shutdown()
  }

  @Test func conforms() async throws {
    let gate = SessionGate()
    try await GateConformance(gate) { if gate.isLoggedIn() { gate.logOut() } else { gate.logIn() } }.run()
    let users = SessionGate(tagPrefix: "fi")
    try await GateConformance(users) { users.logIn("film") }.run()
  }
}
