import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct DryRunTests {
  @Test("The line of JSON has every key")
  func line() {
    var forecast = DryRun.Forecast(id: "00000000deadbeef", url: "http://a/film", path: "/d/film", total: .known(7))
    forecast.isResumable = true
    #expect(
      DryRun.line(forecast) == #"{"event":"dryRun","id":"00000000deadbeef","url":"http://a/film","path":"/d/film","#
        + #""total":7,"resumable":true,"segments":1,"mirrors":[],"taken":false,"state":null,"bytes":0,"error":null}"#)
    (forecast.connections, forecast.mirrors) = (4, ["http://b/1", "http://c/1"])
    #expect(DryRun.line(forecast).contains(#","segments":4,"mirrors":["http://b/1","http://c/1"],"#))
  }

  @Test("Segments and mirrors are shown, where a server permits them", arguments: [nil, 1, 8])
  func segments(connections: Int?) async throws {
    let link: HeaderFields = ["Link": "<http://c.test/>; rel=duplicate, <http://u:p@d.test/>; rel=duplicate"]
    let server = try await ScriptedHTTPServer.start { request in
      let content = ScriptedContent.pattern(size: request.path == "/small" ? 1000 : 40 << 20)
      return switch request.path {
      case "/weak": .file(content, etag: "W/\"1\"", for: request).setting(link)
      case "/whole": .file(content, etag: "\"1\"", supportsRanges: false, for: request).setting(link)
      default: .file(content, etag: "\"1\"", for: request).setting(link)
      }
    }
    let folder = try TemporaryFolder()
    let plan = try GetPlan(urls: ["u"], mirrors: ["http://b.test/?token=secret"])
    let settings = PipelineSettings(connections: connections, directory: folder.path)
    let run = DryRun(plan: plan, settings: settings, isJSON: true, isQuiet: false)
    let source = try await HTTPSource().start(in: SourceContext())
    let forecasts = try await ["/large", "/small", "/weak", "/whole"].asyncMap {
      try await run.forecast("\(server.url($0))", source, nil)
    }
    await source.stop()
    await server.shutdown()
    #expect(forecasts.map(\.connections) == [connections ?? 4, 1, 1, 1])
    #expect(forecasts.map(\.mirrors.count) == [connections == 1 ? 1 : 2, 1, 1, 1])
    for forecast in forecasts {
      #expect(DryRun.line(forecast).contains("http://b.test/?token=…") && !DryRun.line(forecast).contains("secret"))
      #expect(DryRun.line(forecast, URLStyle(isWhole: true)).contains("http://b.test/?token=secret"))
    }
    let text = run.sentence(forecasts[0])
    let expected = [
      nil: "can be resumed, up to 4 connections, 2 mirrors", 1: "can be resumed, 1 mirror",
      8: "can be resumed, 8 connections, 2 mirrors",
    ]
    #expect(text.hasSuffix(expected[connections] ?? "?"), "\(text)")
  }

  @Test("A whole reply to a range request means that the download cannot be resumed")
  func forecasts() async throws {
    let server = try await ScriptedHTTPServer.start { request in
      switch request.path {
      case "/ranges": .file(.pattern(size: 1000), etag: "\"1\"", name: "film.mkv", for: request)
      case "/whole.csv.gz": .file(.pattern(size: 1000), supportsRanges: false, for: request)
      case "/empty": .file(.bytes([]), for: request)
      default: .status(404)
      }
    }
    let folder = try TemporaryFolder()
    try folder.write([1], to: "film.mkv")
    let plan = try GetPlan(urls: ["u"], steps: RequestSteps(gunzips: true))
    let run = DryRun(
      plan: plan, settings: PipelineSettings(directory: folder.path), isJSON: true, isQuiet: false)
    let source = try await HTTPSource().start(in: SourceContext())
    let forecasts = try await ["/ranges", "/whole.csv.gz", "/empty", "/missing"].asyncMap {
      try await run.forecast("\(server.url($0))", source, nil)
    }
    await source.stop()
    await server.shutdown()
    #expect(forecasts.map(\.total) == [.known(1000), .known(1000), .known(0), .unknown])
    #expect(forecasts.map(\.isResumable) == [true, false, true, nil])
    #expect(forecasts.map(\.isTaken) == [true, false, false, false])
    #expect(forecasts.map(\.path) == ["film.mkv", "whole.csv", "empty"].map(folder.path) + [nil])
    #expect(forecasts.last?.error?.code == .httpStatus)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["film.mkv"])
  }

  @Test(
    "The name of a gzip file is that which Gunzip gives it",
    arguments: [("a.csv.gz", "a.csv"), ("a.TGZ", "a.tar"), ("a.svgz", "a.svg"), (".gz", ".gz"), ("a.zip", "a.zip")])
  func names(_ suggested: String, _ name: String) throws {
    func run(_ gunzips: Bool, output: String? = nil) throws -> DryRun {
      var plan = try GetPlan(urls: ["u"], outputName: output)
      plan.steps = RequestSteps(gunzips: gunzips)
      return DryRun(plan: plan, settings: PipelineSettings(directory: "/d"), isJSON: true, isQuiet: false)
    }
    #expect(try run(true).finishedName(suggested) == name)
    #expect(try run(false).finishedName(suggested) == suggested)
    #expect(try run(true, output: "b.gz").finishedName(suggested) == "b.gz")
  }

  @Test("Each policy for an existing file has its own words", arguments: ConflictPolicy.allCases)
  func policies(_ policy: ConflictPolicy) throws {
    var forecast = DryRun.Forecast(id: "a", url: "http://a/film", path: "/d/film", total: .unknown)
    forecast.isResumable = false
    forecast.received = 2048
    let run = DryRun(
      plan: try GetPlan(urls: ["u"]), settings: PipelineSettings(directory: "/d", conflict: policy), isJSON: false,
      isQuiet: false)
    let free = run.sentence(forecast)
    #expect(free == "/d/film: unknown size, cannot be resumed; 2.00 KiB received already")
    forecast.isTaken = true
    let words: [ConflictPolicy: String] = [
      .keepBoth: "gets a number", .replace: "replaces", .fail: "fails", .reuse: "may be used",
    ]
    let word = try #require(words[policy])
    #expect(run.sentence(forecast).contains(word))
  }
}

extension Sequence {
  fileprivate func asyncMap<T>(_ transform: (Element) async throws -> T) async rethrows -> [T] {
    var results: [T] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
