#if Archive
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeArchive

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  @Suite(.endsHangs)
  struct OptionTests {
    static let archive: [UInt8] = {
      var tar = TarBuilder()
      tar.add("top/", type: "5", time: 1_111_111_111)
      tar.add("top/read.me", [1])
      tar.add("top/src/a.c", [2], mode: 0o755, time: 1_222_222_222)
      tar.add("top/src/b.h", [3])
      tar.add("top/doc/a.txt", [4])
      tar.add("top/doc/again", type: "1", link: "top/src/b.h")
      tar.add("top/doc/link", type: "2", link: "../read.me")
      return tar.archive
    }()

    static let all: [String: Found] = [
      "top": .folder, "top/read.me": .file([1]), "top/src": .folder, "top/src/a.c": .file([2]),
      "top/src/b.h": .file([3]),
      "top/doc": .folder, "top/doc/a.txt": .file([4]), "top/doc/again": .file([3]), "top/doc/link": .link("../read.me"),
    ]

    @Test("a pattern matches what is below, also if the next name begins with a combining mark")
    func combiningMarks() async throws {
      var tar = TarBuilder()
      for name in ["top/doc/\u{301}x", "top/doc/y", "top/\u{301}z/a"] { tar.add(name, [1]) }
      #expect(
        try await Bench().unpack(tar.archive, with: Unarchive(except: ["top/doc"])).keys.contains { $0.contains("doc") }
          == false)
      #expect(try await Bench().failure(tar.archive, with: Unarchive(only: ["top?\u{301}z"]))?.code == .processing)
    }

    @Test("without options everything is unpacked")
    func everything() async throws {
      #expect(try await Bench().unpack(Self.archive) == Self.all)
    }

    @Test("leading components are removed, also those of hard links")
    func stripping() async throws {
      var expected: [String: Found] = [:]
      for (path, found) in Self.all where path != "top" { expected[String(path.dropFirst(4))] = found }
      #expect(try await Bench().unpack(Self.archive, with: Unarchive(strippingComponents: 1)) == expected)
      let two = Unarchive(except: ["link"], strippingComponents: 2)
      #expect(
        try await Bench().unpack(Self.archive, with: two)
          == ["a.c": .file([2]), "b.h": .file([3]), "a.txt": .file([4]), "again": .file([3])])
      #expect(try await Bench().unpack(Self.archive, with: Unarchive(strippingComponents: 9)) == [:])
    }

    @Test("all files go into one folder")
    func flattening() async throws {
      #expect(
        try await Bench().unpack(Self.archive, with: Unarchive(flattening: true)) == [
          "read.me": .file([1]), "a.c": .file([2]), "b.h": .file([3]), "a.txt": .file([4]), "again": .file([3]),
        ])
      var tar = TarBuilder()
      tar.add("a/x", [1])
      tar.add("b/x", [2])
      #expect(try await Bench().failure(tar.archive, with: Unarchive(flattening: true))?.code == .unsafePath)
    }

    @Test("entries are chosen by patterns")
    func choosing() async throws {
      let headers = try await Bench().unpack(Self.archive, with: Unarchive(only: ["*.h", "read.*"]))
      #expect(Set(headers.keys) == ["top", "top/src", "top/src/b.h", "top/read.me"])
      let source = try await Bench().unpack(Self.archive, with: Unarchive(only: ["top/src"], except: ["*.c"]))
      #expect(Set(source.keys) == ["top", "top/src", "top/src/b.h"])
      let none = try await Bench().failure(Self.archive, with: Unarchive(only: ["nothing"]))
      #expect(none?.code == .processing && none?.message.contains("nothing") == true)
      // The target of a hard link must be chosen, too.
      #expect(try await Bench().failure(Self.archive, with: Unarchive(only: ["doc"]))?.code == .processing)
      // What is left out is not judged.
      var tar = TarBuilder()
      tar.add("../evil", [1])
      tar.add("device", type: "3")
      tar.add("good", [1])
      #expect(try await Bench().unpack(tar.archive, with: Unarchive(only: ["good"])) == ["good": .file([1])])
      var zip = ZipBuilder()
      zip.add("../evil", [1])
      zip.add("good", [1])
      #expect(try await Bench().unpack(zip.archive(), with: Unarchive(except: ["evil"])) == ["good": .file([1])])
    }

    @Test(
      "patterns",
      arguments: [
        ("*.txt", "a/b.txt", true), ("*.txt", "a.txt/b", true), ("*.txt", "a/btxt", false), ("a/*", "a/b", true),
        ("a/*", "a/b/c", true), ("a/*", "b/a/c", false), ("a/*.c", "a/b/x.c", false), ("a/**.c", "a/b/x.c", true),
        ("**/x", "a/b/x", true), ("?", "a", true), ("?", "ab", false), ("[a-c]1", "b1", true), ("[!a-c]1", "b1", false),
        ("[]]", "]", true), ("[", "[", true), ("\\*", "*", true), ("\\*", "a", false), ("/a", "a", true),
        ("/a", "b/a", false), ("a/", "a/b", true), ("", "a", false), ("**", "a/b", true), ("é", "e\u{301}", true),
        ("*a*a*a*a*a*a*a*a*b", String(repeating: "a", count: 2000), false),
      ])
    func patterns(_ pattern: String, _ path: String, _ matches: Bool) {
      #expect(EntryPattern(pattern).matches(EntryPath.loose(path)) == matches)
    }

    @Test("times are kept or dropped")
    func times() async throws {
      let bench = try Bench()
      _ = try await bench.unpack(Self.archive)
      #expect(try Bench.status(bench.path("top")).modified == 1_111_111_111)
      #expect(try Bench.status(bench.path("top/src/a.c")).modified == 1_222_222_222)
      let other = try Bench()
      _ = try await other.unpack(Self.archive, with: Unarchive(times: .drop))
      for path in ["top", "top/src/a.c"] { #expect(try Bench.status(other.path(path)).modified > 1_700_000_000) }
    }

    #if os(Linux)
      @Test("owners are kept on request", .enabled(if: geteuid() == 0, "needs the superuser"))
      func owners() async throws {
        var tar = TarBuilder()
        tar.add("a", [1], user: 1234)
        let bench = try Bench()
        _ = try await bench.unpack(tar.archive)
        #expect(try Bench.status(bench.path("a")).st_uid == 0)
        _ = try await bench.unpack(tar.archive, with: Unarchive(owners: .keep))
        #expect(try Bench.status(bench.path("a")).st_uid == 1234)
        #expect(try Bench.status(bench.path("a")).st_gid == 1234)
      }
    #endif

    @Test("the printed settings")
    func summary() {
      #expect(Unarchive().summary == "at most 64.0 GiB, at most 256:1, at most 1000000 entries")
      #expect(
        Unarchive(
          only: ["a"], except: ["b"], strippingComponents: 2, flattening: true, links: .skip, times: .drop,
          modes: .keep,
          owners: .keep, limits: .init(entries: 5, bytes: nil, ratio: nil)
        ).summary
          == "any size, any ratio, at most 5 entries, only a, except b, without 2 leading components, flat, links: skip, "
          + "new times, modes: keep, with owners")
      #expect(Unarchive.Limits(depth: 5000, nameLength: 5000) == Unarchive.Limits(depth: 200, nameLength: 255))
    }
  }
#endif
