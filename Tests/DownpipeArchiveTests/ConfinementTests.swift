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

  /// An archive that is refused, with its error.
  struct Evil: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: [UInt8]
    var code: DownloadError.Code
    /// What the message contains.
    var says: String

    static func tar(
      _ name: String, _ code: DownloadError.Code = .unsafePath, says: String = "", _ build: (inout TarBuilder) -> Void
    ) -> Evil {
      var tar = TarBuilder()
      tar.add("before", [1])
      build(&tar)
      return Evil(testDescription: "tar: " + name, bytes: tar.archive, code: code, says: says)
    }

    static func zip(
      _ name: String, _ code: DownloadError.Code = .unsafePath, says: String = "", _ build: (inout ZipBuilder) -> Void
    ) -> Evil {
      var zip = ZipBuilder()
      zip.add("before", [1])
      build(&zip)
      return Evil(testDescription: "zip: " + name, bytes: zip.archive(), code: code, says: says)
    }
  }

  @Suite(.endsHangs)
  struct ConfinementTests {
    static let paths: [Evil] =
      [
        "/etc/downpipe-test", "//x", "../x", "a/../../x", "a/..", "a/../b", "..", "C:x", "c:/x", "z:\\x",
      ].flatMap { path in
        [
          Evil.tar(path, says: "the entry") { $0.add(path) }, .tar("pax \(path)") { $0.addPax([("path", path)]) },
          .zip(path) { $0.add(path) }, .tar("folder \(path)") { $0.add(path + "/", type: "5") },
        ]
      } + [
        .zip("backslash") { $0.add("a\\..\\..\\x") },
        .zip("a backslash and a slash", says: "backslash") { $0.add("b/a\\x") },
        .zip("NUL", says: "NUL") { $0.add("a.exe\0.txt") },
      ]

    static let entries: [Evil] = [
      .tar("character device", says: "device") { $0.add("d", type: "3") },
      .tar("block device", says: "device") { $0.add("d", type: "4") },
      .tar("FIFO", says: "FIFO") { $0.add("d", type: "6") },
      .tar("a file below a file", says: "not a folder") {
        $0.add("a")
        $0.add("a/b")
      },
      .tar("a folder in place of a file", says: "not a folder") {
        $0.add("a")
        $0.add("a/", type: "5")
      },
      .tar("a file in place of a folder", says: "name of a folder") {
        $0.add("a/b")
        $0.add("a")
      },
      .tar("a file through a link", says: "not a folder") {
        $0.add("a", type: "2", link: "../..")
        $0.add("a/b", [1])
      },
      .tar("a file through a link inside", says: "not a folder") {
        $0.add("d/", type: "5")
        $0.add("a", type: "2", link: "d")
        $0.add("a/b", [1])
      },
      .tar("a folder in place of a link") {
        $0.add("a", type: "2", link: "d")
        $0.add("a/", type: "5")
      },
      .tar("case", says: "case") {
        $0.add("Read.me")
        $0.add("read.ME")
      },
      .tar("case of folders", says: "case") {
        $0.add("A/b")
        $0.add("a/c")
      },
      .tar("sigmas", says: "case") {
        $0.add("ΛΟΓΟΣ")
        $0.add("λογος")
      },
      .tar("Unicode forms", says: "Unicode") {
        $0.add("e\u{301}")
        $0.add("\u{E9}")
      },
      .tar("Unicode forms in pax", says: "Unicode") {
        $0.addPax([("path", "e\u{301}")])
        $0.addPax([("path", "\u{E9}")])
      },
      .tar("Unicode forms and case", says: "Unicode") {
        $0.add("e\u{301}")
        $0.add("\u{C9}")
      },
      .zip("Unicode forms", says: "Unicode") {
        $0.add("e\u{301}")
        $0.add("\u{E9}")
      },
      .zip("the same name twice") {
        $0.add("a", [1])
        $0.add("a", [2])
      },
    ]

    static let links: [Evil] = [
      .tar("absolute link", says: "leads out") { $0.add("a", type: "2", link: "/etc/passwd") },
      .tar("link outside", says: "leads out") { $0.add("a", type: "2", link: "../x") },
      .tar("link outside from a folder", says: "leads out") { $0.add("b/a", type: "2", link: "../../x") },
      .tar("link out and in again") { $0.add("a", type: "2", link: "../unarchive/.unpacking/before") },
      .tar("link out through a link", says: "leads out") {
        $0.add("d/e/up", type: "2", link: "../..")
        $0.add("out", type: "2", link: "d/e/up/../..")
      },
      .tar("link out through a later link", says: "leads out") {
        $0.add("out", type: "2", link: "d/e/up/../x")
        $0.add("d/e/up", type: "2", link: "../..")
      },
      .tar("a chain of links", says: "leads out") {
        $0.add("1", type: "2", link: "2/..")
        $0.add("2", type: "2", link: "3")
        $0.add("3", type: "2", link: ".")
      },
      .tar("an empty link", .damaged) { $0.add("a", type: "2", link: "") },
      .zip("link outside", says: "leads out") { $0.add("a", Array("../../x".utf8), mode: 0o120777) },
      .tar("hard link outside", says: "“..”") { $0.add("a", type: "1", link: "../input") },
      .tar("absolute hard link", says: "absolute") { $0.add("a", type: "1", link: "/etc/passwd") },
      .tar("hard link to nothing", .damaged) { $0.add("a", type: "1", link: "later") },
      .tar("hard link to a folder", .damaged) {
        $0.add("d/", type: "5")
        $0.add("a", type: "1", link: "d")
      },
      .tar("hard link to an absolute link", says: "leads out") {
        $0.add("l", type: "2", link: "/etc/passwd")
        $0.add("a", type: "1", link: "l")
      },
      .tar("hard link through a link", .damaged) {
        $0.add("l", type: "2", link: "..")
        $0.add("a", type: "1", link: "l/input")
      },
    ]

    @Test("an archive that could write outside its folder is refused", arguments: paths + entries + links)
    func refuses(_ evil: Evil) async throws {
      let error = try await Bench().failure(evil.bytes)
      #expect(error?.code == evil.code)
      #expect(evil.says.isEmpty || error?.message.contains(evil.says) == true, "\(error?.message ?? "")")
    }

    @Test("links inside are made, also to what comes later or never")
    func linksInside() async throws {
      var tar = TarBuilder()
      tar.add("l1", type: "2", link: "d/f")
      tar.add("d/up", type: "2", link: "..")
      tar.add("d/self", type: "2", link: "up/d/./self")
      tar.add("d/f", [1, 2])
      tar.add("nowhere", type: "2", link: "d/up/missing")
      tar.add("h", type: "1", link: "d/f")
      tar.add("x", type: "1", link: "./l1")
      let bench = try Bench()
      #expect(
        try await bench.unpack(tar.archive) == [
          "l1": .link("d/f"), "d": .folder, "d/up": .link(".."), "d/self": .link("up/d/./self"), "d/f": .file([1, 2]),
          "nowhere": .link("d/up/missing"), "h": .file([1, 2]), "x": .link("d/f"),
        ])
      #expect(try Bench.status(bench.path("h")).st_nlink == 2)
    }

    @Test("links can be refused or skipped")
    func linkPolicies() async throws {
      for (type, link) in [("2", "/etc"), ("2", "f"), ("1", "f")] as [(Character, String)] {
        var tar = TarBuilder()
        tar.add("f", [1])
        tar.add("a", type: type, link: link)
        #expect(try await Bench().failure(tar.archive, with: Unarchive(links: .refuse))?.code == .unsafePath)
        #expect(try await Bench().unpack(tar.archive, with: Unarchive(links: .skip)) == ["f": .file([1])])
      }
    }

    @Test("a later entry of the same name replaces the earlier one in a tar, of any kind")
    func replacing() async throws {
      var tar = TarBuilder()
      tar.add("a", [1])
      tar.add("./a", [2, 3])
      tar.add("l", type: "2", link: "/etc/passwd")
      tar.add("l", [4])
      tar.add("m", [5])
      tar.add("m", type: "2", link: "a")
      tar.add("d/", type: "5")
      tar.add("d//", type: "5")
      #expect(
        try await Bench().unpack(tar.archive) == ["a": .file([2, 3]), "l": .file([4]), "m": .link("a"), "d": .folder])
    }

    @Test("bits for another user or group are never set, other bits as chosen")
    func modes() async throws {
      var tar = TarBuilder()
      tar.add("program", [1], mode: 0o7755)
      tar.add("secret", [1], mode: 0o6600)
      tar.add("folder/", type: "5", mode: 0o7555)
      tar.add("folder/x", [1], mode: 0o444)
      for (modes, program, secret, folder) in [
        (Unarchive.Modes.keep, 0o755, 0o600, 0o755), (.executable, nil, nil, nil), (.drop, nil, nil, nil),
      ] as [(Unarchive.Modes, mode_t?, mode_t?, mode_t?)] {
        let bench = try Bench()
        _ = try await bench.unpack(tar.archive, with: Unarchive(modes: modes))
        let found = try ["program", "secret", "folder"].map { try Bench.status(bench.path($0)).st_mode & 0o7777 }
        for (bits, expected) in zip(found, [program, secret, folder]) {
          #expect(bits & 0o7000 == 0)
          if let expected { #expect(bits == expected) }
        }
        if modes != .keep {
          #expect((found[0] & 0o100 != 0) == (modes == .executable))
          #expect(found[1] & 0o111 == 0)
        }
      }
    }

    @Test(
      "files and folders never allow more than in the archive",
      arguments: [Unarchive.Modes.executable, .keep], ["tar", "zip"])
    func privateEntries(_ modes: Unarchive.Modes, _ format: String) async throws {
      let entries = [
        ("secret/", 0o700), ("secret/key", 0o600), ("secret/read-only", 0o400), ("secret/run", 0o700),
        ("secret/group", 0o640), ("late/x", 0o604), ("late/", 0o750), ("none", 0),
      ]
      let bytes: [UInt8]
      if format == "tar" {
        var tar = TarBuilder()
        for (name, mode) in entries {
          tar.add(name, name.hasSuffix("/") ? [] : [1], type: name.hasSuffix("/") ? "5" : "0", mode: mode)
        }
        bytes = tar.archive
      } else {
        var zip = ZipBuilder()
        for (name, mode) in entries {
          let isFolder = name.hasSuffix("/")
          zip.add(name, isFolder ? [] : [1], mode: UInt32(mode) | (isFolder ? 0o040000 : 0o100000))
        }
        bytes = zip.archive()
      }
      let bench = try Bench()
      let umask = try 0o777 & ~Bench.status(bench.workspace).st_mode
      _ = try await bench.unpack(bytes, with: Unarchive(modes: modes))
      for (name, mode) in entries {
        let path = name.hasSuffix("/") ? String(name.dropLast()) : name
        let found = try Bench.status(bench.path(path)).st_mode & 0o7777
        let expected = mode_t(mode) | (name.hasSuffix("/") ? 0o700 : 0o400)
        #expect(found == (modes == .keep ? expected : expected & ~umask), "\(name): \(String(found, radix: 8))")
      }
    }

    @Test("a folder that is removed from the paths restricts the root", arguments: ["./", "top/"])
    func privateRoot(_ name: String) async throws {
      var tar = TarBuilder()
      tar.add(name, type: "5", mode: 0o700)
      tar.add(name + "key", [1])
      let bench = try Bench()
      _ = try await bench.unpack(tar.archive, with: Unarchive(strippingComponents: name == "./" ? 0 : 1))
      #expect(try Bench.status(bench.path("")).st_mode & 0o777 == 0o700)
    }

    @Test("a slash before a combining mark separates names, too")
    func combiningMark() async throws {
      // For Swift both are one character. The link “k” leads to “d”, and “l” through it above the root.
      var evil = TarBuilder()
      evil.add("d/\u{301}e/", type: "5")
      evil.add("d/\u{301}e/k", type: "2", link: "..")
      evil.add("d/\u{301}e/l", type: "2", link: "k/../../f")
      #expect(try await Bench().failure(evil.archive)?.code == .unsafePath)

      var good = TarBuilder()
      good.add("d/\u{301}e/", type: "5", time: 1_111_111_111)
      good.add("d/\u{301}e/l", type: "2", link: "../f")
      let bench = try Bench()
      let tree = try await bench.unpack(good.archive)
      #expect(tree["d/\u{301}e/l"] == .link("../f"))
      #expect(try Bench.status(bench.path("d/\u{301}e")).modified == 1_111_111_111)
    }

    @Test("the names of a file system of a Mac are compared")
    func folding() {
      for (one, other, isEqual) in [
        ("a", "A", true), ("é", "e\u{301}", true), ("É", "e\u{301}", true), ("ς", "Σ", true), ("K", "\u{212A}", true),
        ("ß", "ss", true), ("ß", "ẞ", true), ("ﬁ", "FI", true), ("ı", "i", false), ("a", "b", false), ("", "", true),
        ("\u{1E9B}\u{323}", "\u{1E69}", true), ("a\u{200D}", "a", true),
      ] {
        #expect((PathHash.of([one]).folded == PathHash.of([other]).folded) == isEqual, "\(one) \(other)")
        #expect((PathHash.of([one]).spelling == PathHash.of([other]).spelling) == one.utf8.elementsEqual(other.utf8))
      }
      #expect(PathHash.of(["a", "b"]).folded != PathHash.of(["ab"]).folded)
    }
  }
#endif
