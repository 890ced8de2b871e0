import DownpipeCore
import Foundation
import HangLimit
import Testing

/// Conditions that the compiler cannot evaluate.
private let conditions = [true, false]

@Suite(.endsHangs)
struct PipelineBuilderTests {
  // MARK: Lists

  @Test func orderIsKeptAndKindsMayBeMixed() {
    let pipeline = Pipeline {
      NamedStep("1")
      NamedSource("a")
      Gunzip()
      NamedGate("g")
      NamedStorage("disk")
      Untar()
      NamedSource("b")
      NamedStep("2")
      Prune()
      NamedGate("h")
    }
    #expect(pipeline.sourceNames == ["a", "b"])
    #expect(pipeline.stepNames == ["1", "Gunzip", "Untar", "2", "Prune"])
    #expect(pipeline.gates.map(\.name) == ["g", "h"])
    #expect(pipeline.storage.name == "disk")
    #expect(pipeline.steps.map(\.input) == [nil, .file, .file, nil, .directory])
    #expect(pipeline.steps.map(\.output) == [nil, .file, .directory, nil, .directory])
  }

  @Test func sourceAndStorageInEitherOrder() {
    let first = Pipeline {
      NamedSource(); NamedStorage()
    }
    let second = Pipeline {
      NamedStorage(); NamedSource()
    }
    #expect(first.sourceNames == second.sourceNames)
    #expect(first.storage.name == second.storage.name)
  }

  @Test func whatIsLeftOutHasADefault() throws {
    let pipeline = Pipeline {
      NamedSource(); NamedStorage()
    }
    #expect(pipeline.scheduling == nil)
    #expect(pipeline.admission.isEmpty)
    #expect(pipeline.gates.isEmpty)
    #expect(pipeline.interceptors.isEmpty)
    #expect(pipeline.steps.isEmpty)
    #expect(pipeline.observers.isEmpty)
    #expect(pipeline.retry as? Retry == Retry())
    #expect(pipeline.ledger is MemoryLedger)
  }

  @Test func everyKindFindsItsPlace() {
    let pipeline = Pipeline {
      NamedSource("source")
      NamedPolicy("policy")
      NamedLimit("limit")
      NamedGate("gate")
      NamedInterceptor("interceptor")
      NamedStorage("storage")
      NamedLedger("ledger")
      Retry(.never)
      NamedStep("step")
      NamedObserver("observer")
    }
    #expect(pipeline.sourceNames == ["source"])
    #expect(pipeline.scheduling?.name == "policy")
    #expect(pipeline.admission.map(\.name) == ["limit"])
    #expect(pipeline.gates.map(\.name) == ["gate"])
    #expect(pipeline.interceptors.map(\.name) == ["interceptor"])
    #expect(pipeline.storage.name == "storage")
    #expect(pipeline.ledger.name == "ledger")
    #expect(pipeline.retry as? Retry == Retry(.never))
    #expect(pipeline.stepNames == ["step"])
    #expect(pipeline.observers.map(\.name) == ["observer"])
  }

  @Test func ofWhatThereIsOneOfTheLastCounts() {
    let pipeline = Pipeline {
      NamedSource()
      NamedStorage("old")
      NamedPolicy("old")
      NamedLedger("old")
      Retry(.never)
      NamedPolicy("new")
      NamedLedger("new")
      Retry(.constant(.seconds(1)))
      // The compiler refuses a second storage that is certain.
      for name in ["new"] { NamedStorage(name) }
    }
    #expect(pipeline.scheduling?.name == "new")
    #expect(pipeline.ledger.name == "new")
    #expect(pipeline.retry as? Retry == Retry(.constant(.seconds(1))))
    #expect(pipeline.storage.name == "new")
  }

  // MARK: Statements

  @Test(arguments: conditions)
  func ifWithoutElse(condition: Bool) {
    let pipeline = Pipeline {
      NamedSource("a")
      NamedStorage()
      if condition {
        NamedSource("extra")
        NamedGate("g")
        Gunzip()
      }
      NamedStep("last")
    }
    #expect(pipeline.sourceNames == (condition ? ["a", "extra"] : ["a"]))
    #expect(pipeline.gates.count == (condition ? 1 : 0))
    #expect(pipeline.stepNames == (condition ? ["Gunzip", "last"] : ["last"]))
  }

  @Test(arguments: conditions)
  func ifElseOfDifferentTypes(condition: Bool) {
    let pipeline = Pipeline {
      if condition {
        NamedSource("a")
        NamedStorage("x")
        NamedGate("g")
      } else {
        NamedStorage("y")
        NamedSource("b")
        NamedPolicy("p")
        NamedLimit("l")
      }
    }
    #expect(pipeline.sourceNames == [condition ? "a" : "b"])
    #expect(pipeline.storage.name == (condition ? "x" : "y"))
    #expect(pipeline.gates.isEmpty == !condition)
    #expect((pipeline.scheduling == nil) == condition)
  }

  @Test(arguments: conditions)
  func ifElseWithStepsOfTheSameForms(condition: Bool) {
    let pipeline = Pipeline {
      NamedSource()
      NamedStorage()
      if condition {
        Untar()
      } else {
        Gunzip()
        Untar()
      }
      Prune()
    }
    #expect(pipeline.stepNames == (condition ? ["Untar", "Prune"] : ["Gunzip", "Untar", "Prune"]))
  }

  @Test(arguments: 0..<4)
  func chainsOfElseIf(number: Int) {
    let pipeline = Pipeline {
      NamedStorage()
      if number == 0 {
        NamedSource("0")
      } else if number == 1 {
        NamedSource("1")
        NamedGate()
      } else if number == 2 {
        NamedLimit()
        NamedSource("2")
      } else {
        NamedSource("else")
      }
    }
    #expect(pipeline.sourceNames == [number < 3 ? "\(number)" : "else"])
  }

  @Test(arguments: 0..<3)
  func elseIfWithoutElse(number: Int) {
    let pipeline = Pipeline {
      NamedSource()
      NamedStorage()
      if number == 0 {
        NamedGate("0")
      } else if number == 1 {
        NamedLimit("1")
      }
    }
    #expect(pipeline.gates.count == (number == 0 ? 1 : 0))
    #expect(pipeline.admission.count == (number == 1 ? 1 : 0))
  }

  private enum Kind: CaseIterable { case disk, memory, tape }

  @Test(arguments: Kind.allCases)
  private func switches(kind: Kind) {
    let pipeline = Pipeline {
      NamedSource()
      switch kind {
      case .disk: NamedStorage("disk")
      case .memory:
        NamedStorage("memory")
        NamedGate()
      case .tape:
        NamedLimit()
        NamedStorage("tape")
      }
    }
    #expect(pipeline.storage.name == "\(kind)")
  }

  @Test func ifLetAndIfCase() {
    let name: String? = conditions[0] ? "mirror" : nil
    let pipeline = Pipeline {
      NamedSource("main")
      NamedStorage()
      if let name { NamedSource(name) }
      if case .some(let text) = name, !text.isEmpty { NamedStep(text) }
    }
    #expect(pipeline.sourceNames == ["main", "mirror"])
    #expect(pipeline.stepNames == ["mirror"])
  }

  @Test(arguments: [0, 1, 4])
  func forLoops(count: Int) {
    let pipeline = Pipeline {
      NamedSource("main")
      NamedStorage()
      for number in 0..<count {
        NamedSource("mirror \(number)")
        NamedStep("step \(number)")
        if number.isMultiple(of: 2) { Gunzip() }
      }
    }
    #expect(pipeline.sourceNames == ["main"] + (0..<count).map { "mirror \($0)" })
    #expect(
      pipeline.stepNames
        == (0..<count).flatMap { $0.isMultiple(of: 2) ? ["step \($0)", "Gunzip"] : ["step \($0)"] })
  }

  @Test func availability() {
    let pipeline = Pipeline {
      if #available(macOS 15, iOS 18, *) {
        NamedSource("new")
        NamedStorage()
        Untar()
      } else {
        NamedSource("old")
        NamedStorage()
        Untar()
      }
      if #available(macOS 15, *) { NamedGate("g") }
      Prune()
    }
    #expect(pipeline.sourceNames == ["new"])
    #expect(pipeline.gates.map(\.name) == ["g"])
    #expect(pipeline.stepNames == ["Untar", "Prune"])
  }

  @Test func declarationsBetweenStages() {
    let pipeline = Pipeline {
      let name = "named"
      NamedSource(name)
      let count = 2
      NamedStorage()
      for number in 1...count {
        let label = "\(name) \(number)"
        NamedGate(label)
      }
    }
    #expect(pipeline.sourceNames == ["named"])
    #expect(pipeline.gates.map(\.name) == ["named 1", "named 2"])
  }

  @Test(arguments: conditions, conditions)
  func statementsNest(outer: Bool, inner: Bool) {
    let pipeline = Pipeline {
      NamedSource()
      if outer {
        if inner { NamedStorage("both") } else { NamedStorage("outer") }
      } else {
        switch inner {
        case true: NamedStorage("inner")
        case false: NamedStorage("neither")
        }
      }
    }
    #expect(pipeline.storage.name == (outer ? (inner ? "both" : "outer") : (inner ? "inner" : "neither")))
  }

  @Test func formsMayChangeThereAndBack() {
    let pipeline = Pipeline {
      NamedSource()
      NamedStorage()
      Untar()
      NamedStep()
      Prune()
      Tar()
      Gunzip()
    }
    #expect(pipeline.stepNames == ["Untar", "NamedStep", "Prune", "Tar", "Gunzip"])
    #expect("\(pipeline)".contains("a file"))
  }
}
