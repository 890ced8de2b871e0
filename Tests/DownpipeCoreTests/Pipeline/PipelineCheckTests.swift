import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Errors found when a downloader is created, and the stages in effect afterwards.
@Suite(.endsHangs)
struct PipelineCheckTests {
  private func refusal(@PipelineBuilder _ stages: () -> PipelineStages) -> DownloadError? {
    do throws(DownloadError) {
      try Pipeline(stages()).check()
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: ["storage", "ledger", "scheduling policy", "retry policy", "link refresher"])
  func thereIsOneOfEach(_ kind: String) {
    let error = refusal {
      NamedSource()
      NamedStorage("disk")
      for name in ["one", "two"] {
        switch kind {
        case "ledger": NamedLedger(name)
        case "scheduling policy": NamedPolicy(name)
        case "retry policy": Retry(.never)
        case "link refresher": FakeLinkRefresher { _ in throw Unused() }
        default: NamedGate(name)
        }
      }
      if kind == "storage" { NamedStorage("memory") }
    }
    #expect(error?.code == .invalidPipeline)
    #expect(error?.message.hasPrefix("a pipeline has one \(kind), this one has 2: ") == true, "\(error?.message ?? "")")
  }

  @Test(arguments: ["gates", "admission policies", "sources"])
  func stagesOfAKindHaveTheirOwnIDs(_ kind: String) {
    for names in [["one", "two"], ["one", "one"]] {
      let error = refusal {
        NamedStorage()
        NamedSource("web")
        for name in names {
          switch kind {
          case "gates": NamedGate(name)
          case "admission policies": NamedLimit(name)
          default: NamedSource(name)
          }
        }
      }
      #expect((error == nil) == (names == ["one", "two"]))
      if let error {
        #expect(error.code == .invalidPipeline)
        #expect(error.message.contains("two \(kind) with the id “one”") && error.message.contains("id: \"another\""))
      }
    }
  }

  @Test func oneIDOfTwoKindsIsNoMatter() {
    let error = refusal {
      NamedSource("x")
      NamedStorage("x")
      NamedGate("x")
      NamedLimit("x")
      NamedStep("x")
      NamedStep("x")
    }
    #expect(error == nil)
  }

  /// A gate whose id differs from its name.
  private struct Gate2: Gate {
    let id: String
    let words: String
    var name: String { "Gate2" }
    var summary: String { words }
    func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws { publish(.open) }
  }

  @Test func replacingGoesByIDAndInPlace() async throws {
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      FakeSource(everyURL: .init([1]))
      FakeStorage()
      Gate2(id: "a", words: "first")
      Gate2(id: "b", words: "second")
    }
    func gates() async -> [String] { await downloader.pipeline.gates.map(\.summary) }
    #expect(await gates() == ["first", "second"])
    await downloader.replace(Gate2(id: "a", words: "third"))
    #expect(await gates() == ["third", "second"])
    #expect(
      await downloader.engine.state.gates.stages.map(\.summary) == ["third", "second"], "the engine uses the same gates"
    )
    await downloader.replace(Gate2(id: "c", words: "fourth"))
    #expect(await gates() == ["third", "second", "fourth"])
    #expect(await downloader.pipeline.description.contains("Gate2 (third) and Gate2 (second) and Gate2 (fourth)"))
    #expect(await !downloader.removeGate(id: "Gate2"), "the name is not the id")
    #expect(await downloader.removeGate(id: "b"))
    #expect(await gates() == ["third", "fourth"])
    await downloader.shutdown()
  }

  @Test func twoGatesOfOneIDAreRefusedByTheDownloader() async throws {
    await #expect {
      _ = try await Downloader {
        FakeSource(everyURL: .init([1]))
        FakeStorage()
        FakeGate()
        FakeGate()
      }
    } throws: { ($0 as? DownloadError)?.code == .invalidPipeline }
  }
}
