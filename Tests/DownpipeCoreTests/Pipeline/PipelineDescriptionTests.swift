import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

@testable import struct DownpipeCore.MermaidChart

@Suite(.endsHangs)
struct PipelineDescriptionTests {
  private let small = Pipeline {
    NamedSource()
    NamedStorage()
  }

  private let large = Pipeline {
    NamedSource("first")
    NamedSource("second", "a mirror")
    NamedPolicy("Oldest")
    NamedLimit("Limits", "3 at once")
    NamedLimit("Quota")
    NamedGate("Online")
    NamedGate("Hours", "8 to 18")
    FakeLinkRefresher { expired in FreshLink(expired.request.url) }
    NamedInterceptor("Auth")
    NamedInterceptor("Trace", "all")
    NamedStorage("Disk", "~/Downloads")
    Retry(.never)
    NamedStep("check")
    Untar()
    NamedObserver("Log")
  }

  @Test func whatIsLeftOutHasADefaultOrIsNone() {
    #expect(
      "\(small)" == """
        request
        → scheduling    in order of arrival
        → admission     5 at once
        → gates         none
        → source        NamedSource
        → storage       NamedStorage
        → steps         none
        → artifact      a file
        beside the flow
          retry         Retry (up to 5 attempts, waiting at most 1 s, doubling to 60 s)
          ledger        MemoryLedger
          links         none
          interceptors  none
          observers     none
        """)
  }

  @Test func showsEveryStage() {
    #expect(
      "\(large)" == """
        request
        → scheduling    Oldest
        → admission     Limits (3 at once) and Quota
        → gates         Online and Hours (8 to 18)
        → source        first, else second (a mirror)
        → storage       Disk (~/Downloads)
        → steps         check → Untar
        → artifact      a directory
        beside the flow
          retry         Retry (one attempt)
          ledger        MemoryLedger
          links         FakeLinkRefresher
          interceptors  Auth around Trace (all)
          observers     Log
        """)
  }

  @Test func aNameCannotBreakTheLines() {
    let odd = Pipeline {
      NamedSource("two\nlines\u{1B}[31m", "tab\tand\r\nmore")
      NamedStorage()
    }
    #expect("\(odd)".contains("→ source        two lines [31m (tab and more)"))
    #expect("\(odd)".split(separator: "\n").count == 14)
  }

  @Test func drawsTheSmallOne() {
    #expect(
      small.mermaid == """
        flowchart LR
          request(["request"])
          scheduling["scheduling<br/>in order of arrival"]
          admission1["admission<br/>5 at once"]
          source1["source<br/>NamedSource"]
          storage[("storage<br/>NamedStorage")]
          artifact(["artifact<br/>a file"])
          retry["retry<br/>Retry<br/>up to 5 attempts, waiting at most 1 s, doubling to 60 s"]
          ledger[("ledger<br/>MemoryLedger")]
          request --> scheduling
          scheduling --> admission1
          admission1 --> source1
          source1 --> storage
          storage --> artifact
          retry -.- source1
          ledger -.- scheduling
          ledger -.- storage

        """)
  }

  @Test func drawsTheLargeOne() {
    let lines = large.mermaid.split(separator: "\n").map { $0.trimmingPrefix("  ") }
    #expect(lines.filter { $0.contains("-->") }.count == 12)
    for line in [
      "gate2{\"gate<br/>Hours<br/>8 to 18\"}", "scheduling --> admission1", "admission1 --> admission2",
      "admission2 --> gate1", "gate2 --> source1", "gate2 --> source2", "source1 --> storage", "source2 --> storage",
      "storage --> step1", "step1 --> step2", "step2 --> artifact", "interceptor1 -.- source2",
      "observer1 -.- artifact",
    ] {
      #expect(lines.contains(line[...]), "\(line)")
    }
    #expect(large.mermaid == large.mermaid)
  }

  @Test(arguments: [
    ("plain", "plain"), ("~/Downloads", "#126;/Downloads"), ("a \"quoted\" word", "a #34;quoted#34; word"),
    ("<script>alert(1)</script>", "#60;script#62;alert(1)#60;/script#62;"), ("#35; & `x`", "#35;35#59; #38; #96;x#96;"),
    ("a]b}c|d", "a#93;b#125;c#124;d"), ("*_[x](y)", "#42;#95;#91;x#93;(y)"), ("%%{init}", "#37;#37;#123;init#125;"),
    ("höher → Ω", "höher → Ω"), ("back\\slash", "back#92;slash"), ("a\u{0}b", "a#0;b"), ("", ""),
  ])
  func escapesWhatMermaidReads(text: String, escaped: String) {
    #expect(MermaidChart.escaped(text) == escaped)
  }
}
