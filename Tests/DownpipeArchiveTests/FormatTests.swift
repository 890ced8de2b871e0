#if Archive
  import DownpipeArchive
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// Archives that other programs write.
  @Suite(.endsHangs)
  struct FormatTests {
    static let noise = DownloadFixtures.pattern(size: 700_001, seed: 7)

    /// A folder to be packed: files, an empty one, a program, folders, links, and names beyond ASCII.
    static func fill(_ folder: TemporaryFolder) throws -> [String: Found] {
      let files = FileManager.default
      let root = folder.path("tree")
      try files.createDirectory(atPath: root + "/deep/er/empty", withIntermediateDirectories: true)
      try Data(noise).write(to: URL(filePath: root + "/noise.bin"))
      try Data().write(to: URL(filePath: root + "/deep/nothing"))
      try Data("text".utf8).write(to: URL(filePath: root + "/deep/er/naïve 世界.txt"))
      try Data("#!/bin/sh\n".utf8).write(to: URL(filePath: root + "/run"))
      try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: root + "/run")
      try files.createSymbolicLink(atPath: root + "/deep/link", withDestinationPath: "../run")
      return [
        "deep": .folder, "deep/er": .folder, "deep/er/empty": .folder, "noise.bin": .file(noise),
        "deep/nothing": .file([]), "deep/er/naïve 世界.txt": .text("text"), "run": .text("#!/bin/sh\n"),
        "deep/link": .link("../run"),
      ]
    }

    static let tarFormats = ["ustar", "pax", "gnutar", "cpio", "newc", "odc", "v7tar", "7zip", "zip"]

    @Test("formats that bsdtar writes", arguments: tarFormats)
    func formats(_ format: String) async throws {
      let folder = try TemporaryFolder()
      let expected = try Self.fill(folder)
      try Program.run("bsdtar", ["--format", format, "-cf", "../out", "."], in: folder.path("tree"))
      let bench = try Bench()
      #expect(try await bench.unpack(folder.read("out")) == expected)
      #expect(try Bench.status(bench.path("run")).st_mode & 0o100 != 0)
      #expect(try Bench.status(bench.path("noise.bin")).st_mode & 0o111 == 0)
    }

    @Test(
      "compressed archives, and compressed compressed ones",
      arguments: [["--gzip"], ["--xz"], ["--zstd"], ["--bzip2"], ["--lz4"]])
    func filters(_ options: [String]) async throws {
      let folder = try TemporaryFolder()
      let expected = try Self.fill(folder)
      for format in ["pax", "newc"] {
        try Program.run("bsdtar", options + ["--format", format, "-cf", "../out", "."], in: folder.path("tree"))
        #expect(try await Bench().unpack(folder.read("out")) == expected)
        let twice = try Program.compress("gzip", "gz", folder.read("out"))
        #expect(try await Bench().unpack(twice) == expected)
      }
    }

    @Test("GNU tar with sparse files, long names and hard links")
    func gnu() async throws {
      let folder = try TemporaryFolder()
      var expected = try Self.fill(folder)
      let root = folder.path("tree")
      let long = String(repeating: "long name ", count: 20)
      try Data("x".utf8).write(to: URL(filePath: root + "/" + long))
      try FileManager.default.linkItem(atPath: root + "/run", toPath: root + "/zz")
      try Program.run("truncate", ["-s", "3000000", "hole"], in: root)
      var hole = [UInt8](repeating: 0, count: 3_000_000)
      expected["hole"] = .file(hole)
      hole.replaceSubrange(1_000_000..<1_000_003, with: [1, 2, 3])
      try Data(hole).write(to: URL(filePath: root + "/holes"))
      try Program.run("cp", ["--sparse=always", "holes", "holes2"], in: root)
      expected[long] = .text("x")
      expected["zz"] = .text("#!/bin/sh\n")
      expected["holes"] = .file(hole)
      expected["holes2"] = .file(hole)
      for format in ["gnu", "pax"] {
        try Program.run("tar", ["--sparse", "--format", format, "-cf", "../out", "."], in: root)
        let bench = try Bench()
        #expect(try await bench.unpack(folder.read("out"), durability: .power) == expected)
        #expect(try Bench.status(bench.path("zz")).st_ino == Bench.status(bench.path("run")).st_ino)
        #expect(try Bench.status(bench.path("holes2")).st_blocks < 1000)
      }
    }

    @Test(
      "zip and 7-Zip's own programs, with every option for the data",
      arguments: [["zip"], ["7z", "zip"], ["7z", "7z"]])
    func zips(_ program: [String]) async throws {
      let folder = try TemporaryFolder()
      var expected = try Self.fill(folder)
      let root = folder.path("tree")
      if program[0] == "zip" {
        for options in [
          ["-q", "-r", "-y"], ["-q", "-r", "-y", "-0"], ["-q", "-r", "-y", "-fz"], ["-q", "-r", "-y", "-fd"],
        ] {
          if options.contains("-fd") {
            // zip 3.0-13 of Debian refuses links with it.
            try FileManager.default.removeItem(atPath: root + "/deep/link")
            expected["deep/link"] = nil
          }
          try? FileManager.default.removeItem(atPath: folder.path("out.zip"))
          try Program.run("zip", options + ["../out.zip", "."], in: root)
          #expect(try await Bench().unpack(folder.read("out.zip")) == expected, "\(options)")
        }
        // Read as a stream, without the directory at the end.
        let packed = try Program.compress("xz", "xz", folder.read("out.zip"))
        let streamed = try await Bench().unpack(packed)
        #expect(streamed["noise.bin"] == expected["noise.bin"])
        return
      }
      try FileManager.default.removeItem(atPath: root + "/deep/link")
      expected["deep/link"] = nil
      let methods =
        program[1] == "zip" ? ["Deflate", "LZMA", "BZip2", "PPMd"] : ["LZMA", "LZMA2", "BZip2", "PPMd", "Copy"]
      for method in methods {
        let out = "out.\(program[1])"
        try? FileManager.default.removeItem(atPath: folder.path(out))
        let option = program[1] == "zip" ? "-mm=\(method)" : "-m0=\(method)"
        try Program.run("7z", ["a", "-bd", "-t\(program[1])", option, "../\(out)", "."], in: root)
        #expect(try await Bench().unpack(folder.read(out)) == expected, "\(method)")
      }
    }

    @Test("a zip file with something before it")
    func selfExtracting() async throws {
      var zip = ZipBuilder()
      zip.add("a.txt", [1, 2, 3])
      let program = DownloadFixtures.pattern(size: 3000)
      #expect(try await Bench().unpack(program + zip.archive()) == ["a.txt": .file([1, 2, 3])])
    }

    @Test("encrypted archives are their own error")
    func encrypted() async throws {
      let folder = try TemporaryFolder()
      _ = try Self.fill(folder)
      let root = folder.path("tree")
      try Program.run("zip", ["-q", "-r", "-P", "secret", "../1.zip", "."], in: root)
      try Program.run("7z", ["a", "-bd", "-psecret", "-tzip", "-mem=AES256", "../2.zip", "."], in: root)
      try Program.run("7z", ["a", "-bd", "-psecret", "../3.7z", "."], in: root)
      try Program.run("7z", ["a", "-bd", "-psecret", "-mhe=on", "../4.7z", "."], in: root)
      for name in ["1.zip", "2.zip", "3.7z", "4.7z"] {
        #expect(try await Bench().failure(folder.read(name))?.code == .encrypted, "\(name)")
      }
    }

    @Test("the progress is that of the bytes read", arguments: ["tar", "zip"])
    func progress(_ format: String) async throws {
      let files = (0..<8).map { DownloadFixtures.pattern(size: 500_000, seed: $0) }
      var tar = TarBuilder()
      var zip = ZipBuilder()
      for (number, bytes) in files.enumerated() {
        tar.add("f\(number)", bytes)
        zip.add("f\(number)", bytes)
      }
      let bench = try Bench()
      let path = try bench.folder.write(format == "tar" ? tar.archive : zip.archive(), to: "input")
      let seen = Watched<[StepProgress]>([])
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/file"), workspace: bench.workspace,
        report: { progress in seen.update { $0.append(progress) } })
      _ = try await Unarchive().process(File(path: path, name: "a"), in: context)
      let reports = seen.value
      let first = try #require(reports.first { $0.items == 1 })
      #expect(first.completed < 1_500_000, "\(first)")
      #expect(Swift.zip(reports, reports.dropFirst()).allSatisfy { $0.completed <= $1.completed })
      let last = try #require(reports.last)
      #expect(last.items == 8 && last.completed > 4_000_000, "\(last)")
    }

    @Test("encrypted entries that are left out do not matter")
    func encryptedEntry() async throws {
      let folder = try TemporaryFolder()
      try folder.write([1], to: "clear")
      try folder.write([2], to: "secret")
      try Program.run("zip", ["-q", "a.zip", "clear"], in: folder.path)
      try Program.run("zip", ["-q", "-P", "secret", "a.zip", "secret"], in: folder.path)
      let bytes = try folder.read("a.zip")
      #expect(try await Bench().unpack(bytes, with: Unarchive(only: ["clear"])) == ["clear": .file([1])])
      #expect(try await Bench().failure(bytes)?.code == .encrypted)
    }

    @Test(
      "the format is that of the first header, not that of a zip in the last file", arguments: ["ustar", "v7", "cpio"])
    func zipAtTheEnd(_ format: String) async throws {
      var zip = ZipBuilder()
      zip.add("inner", [1])
      let folder = try TemporaryFolder()
      try folder.write(zip.archive(), to: "a.zip")
      let bytes: [UInt8]
      if format == "cpio" {
        var cpio = CPIOBuilder()
        cpio.add("a.zip", zip.archive(), inode: 1)
        bytes = cpio.archive
      } else {
        try Program.run("tar", ["--format", format, "-cf", "a.tar", "a.zip"], in: folder.path)
        bytes = try folder.read("a.tar")
      }
      #expect(try await Bench().unpack(bytes) == ["a.zip": .file(zip.archive())])
    }

    @Test("a name is not taken for the signature of another format")
    func signaturesInNames() async throws {
      for name in ["my-lhasa/x", "LZIP", "MSCF", "Rar!", "PK001.txt", "PK\u{3}\u{4}", "xar!"] {
        var tar = TarBuilder()
        tar.add(name, [1])
        #expect(try await Bench().unpack(tar.archive)[name] == .file([1]), "\(name)")
      }
    }

    @Test("empty archives give an empty folder")
    func empty() async throws {
      #expect(try await Bench().unpack(TarBuilder().archive) == [:])
      #expect(try await Bench().unpack(ZipBuilder().archive()) == [:])
    }

    @Test("the folder has the archive's name without its suffixes")
    func names() async throws {
      var tar = TarBuilder()
      tar.add("a")
      for (name, expected) in [
        ("a.tar", "a"), ("a.tar.gz", "a"), ("B.TGZ", "B"), ("a.zip", "a"), ("a.7z", "a"), ("a.cpio.zst", "a"),
        ("a", "a"),
        (".tar", ".tar"), ("a.b", "a.b"), ("...zip", "...zip"), ("v1.tar.lz4", "v1"),
      ] {
        let bench = try Bench()
        _ = try await bench.unpack(tar.archive, named: name)
        #expect(try FileManager.default.contentsOfDirectory(atPath: bench.workspace + "/unarchive") == [expected])
      }
    }
  }
#endif
