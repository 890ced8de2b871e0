import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct StageGroupTests {
  private struct Nothing: StageGroup {
    var body: some Stage {}
  }

  private struct Polite: StageGroup {
    var isSlow = false
    var body: some Stage {
      NamedLimit("polite")
      Retry(.never)
      if isSlow { NamedGate("slow") }
    }
  }

  private struct Nested: StageGroup {
    var body: some Stage {
      NamedStep("before")
      Polite(isSlow: true)
      NamedStep("after")
    }
  }

  private struct ToDisk: StageGroup {
    var body: some PipelineFragment<HasSource, HasStorage, NoSteps> {
      NamedSource("grouped")
      NamedStorage("disk")
      Polite()
    }
  }

  private struct Unpack: StageGroup {
    var body: some PipelineFragment<NoSource, NoStorage, Steps<File, Directory>> {
      Gunzip()
      Untar()
    }
  }

  private struct Everything: StageGroup {
    var body: some PipelineFragment<HasSource, HasStorage, Steps<File, Directory>> {
      ToDisk()
      Unpack()
    }
  }

  @Test func emptyGroupsAddNothing() {
    let pipeline = Pipeline {
      Nothing(); NamedSource(); Nothing(); NamedStorage(); Nothing()
    }
    #expect("\(pipeline)" == "\(Pipeline { NamedSource(); NamedStorage() })")
  }

  @Test func groupsOfPoliciesAreStages() {
    let pipeline = Pipeline {
      NamedSource(); NamedStorage(); Nested(); NamedStep("last")
    }
    #expect(pipeline.admission.map(\.name) == ["polite"])
    #expect(pipeline.gates.map(\.name) == ["slow"])
    #expect(pipeline.retry as? Retry == Retry(.never))
    #expect(pipeline.stepNames == ["before", "after", "last"])
  }

  @Test func groupsMayBringTheSourceTheStorageAndSteps() {
    let pipeline = Pipeline {
      ToDisk(); Unpack(); Prune()
    }
    #expect(pipeline.sourceNames == ["grouped"])
    #expect(pipeline.storage.name == "disk")
    #expect(pipeline.stepNames == ["Gunzip", "Untar", "Prune"])
    let whole = Pipeline { Everything() }
    #expect(whole.stepNames == ["Gunzip", "Untar"])
    #expect(whole.admission.count == 1)
  }

  @Test(arguments: [true, false])
  func groupsInBranches(condition: Bool) {
    let pipeline = Pipeline {
      if condition {
        ToDisk()
      } else {
        NamedSource("plain")
        NamedStorage("plain")
      }
      if condition { Polite(isSlow: true) }
      for _ in 0..<2 { Polite() }
    }
    #expect(pipeline.sourceNames == [condition ? "grouped" : "plain"])
    #expect(pipeline.admission.count == (condition ? 4 : 2))
  }

  @Test func aStageMayBeTwoKinds() {
    struct Both: Gate, Observer {
      func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {}
      func observe(_ events: AsyncStream<DownloadEvent>) async {}
      func contribute(to parts: inout PipelineParts) {
        parts.gates.append(self)
        parts.observers.append(self)
      }
    }
    let pipeline = Pipeline {
      NamedSource(); Both(); NamedStorage()
    }
    #expect(pipeline.gates.map(\.name) == ["Both"])
    #expect(pipeline.observers.map(\.name) == ["Both"])
  }
}
