#if Archive
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd {
    /// Archives that try to write outside of their folder, unpacked by the tool as the superuser, as a user without rights,
    /// and where the rest of the file system cannot be written. Everybody may write to the folder that they aim at.
    @Suite(.enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    struct EvilArchiveTests {
      /// Writes archives into the first argument that aim at the folder of the second one. Python's modules write any name.
      private static let script = """
        import io, os, sys, tarfile, zipfile
        made, victim = sys.argv[1:]
        up = "../" * 12
        def tar(name, *entries):
            with tarfile.open(os.path.join(made, name + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
                for path, kind, value in entries:
                    entry = tarfile.TarInfo(path)
                    entry.mode = 0o777
                    data = value if kind == "file" else b""
                    if kind == "link": entry.type, entry.linkname = tarfile.SYMTYPE, value
                    if kind == "hard": entry.type, entry.linkname = tarfile.LNKTYPE, value
                    if kind == "folder": entry.type = tarfile.DIRTYPE
                    if kind == "device": entry.type, entry.devmajor, entry.devminor = tarfile.CHRTYPE, 1, 3
                    if kind == "fifo": entry.type = tarfile.FIFOTYPE
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
        def zip(name, *entries):
            with zipfile.ZipFile(os.path.join(made, name + ".zip"), "w") as archive:
                for path, kind, value in entries:
                    entry = zipfile.ZipInfo(path)
                    entry.create_system = 3
                    entry.external_attr = {"file": 0o100777, "link": 0o120777}[kind] << 16
                    archive.writestr(entry, value)
        evil = b"evil"
        for make in [tar, zip]:
            make("parent", (up + victim.strip("/") + "/file", "file", evil))
            make("absolute", (victim + "/file", "file", evil))
            make("late", ("good", "file", evil), ("a/../../../../" + up + victim.strip("/") + "/file", "file", evil))
            make("backslash", ("..\\\\..\\\\file", "file", evil))
            make("drive", ("C:/file", "file", evil))
            make("link", ("out", "link", victim), ("out/file", "file", evil))
            make("relative-link", ("out", "link", up + victim.strip("/")), ("out/file", "file", evil))
            make("chain", ("a", "link", "b"), ("b", "link", victim), ("a/file", "file", evil))
            make("over-link", ("file", "link", victim + "/precious"), ("file", "file", evil))
            make("twins", ("Out", "link", victim), ("out/file", "file", evil))
        tar("hard", ("file", "hard", victim + "/precious"), ("file", "file", evil))
        tar("hard-up", ("file", "hard", up + victim.strip("/") + "/precious"))
        tar("folder-link", ("out", "folder", None), ("out", "link", victim), ("out/file", "file", evil))
        tar("device", ("null", "device", None))
        tar("fifo", ("pipe", "fifo", None))
        """

      enum Right: String, CaseIterable, Sendable {
        case root
        case otherUser
        /// With the rest of the file system read-only.
        case namespace
      }

      @Test("nothing outside the folder is touched", arguments: Right.allCases)
      func nothingOutsideIsTouched(_ right: Right) async throws {
        let made = try TemporaryFolder()
        try await DefectRun.with { request in
          (try? made.read(String(request.path.dropFirst()))).map { .file(.bytes($0), etag: "\"v1\"", for: request) }
            ?? .status(404)
        } _: { run in
          let victim = run.folder.path("victim")
          _ = try run.folder.write(Array("precious".utf8), to: "victim/precious")
          _ = try run.folder.write([], to: "work/empty")
          // Other users may not read the folder of the build.
          let tool = run.folder.path("downpipe")
          let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
          try FileManager.default.copyItem(atPath: products.appending(path: "downpipe").path, toPath: tool)
          try await RootAccess.run("chmod", ["-R", "777", run.folder.path])
          let built = try await Command("python3", ["-c", Self.script, made.path, victim]).run()
          try #require(built.status == 0, "\(built.everything)")
          let names = try made.contents().filter { $0.hasSuffix(".tar.gz") || $0.hasSuffix(".zip") }.sorted()
          #expect(names.count == 25)
          for name in names {
            let work = run.folder.path("work/\(name)")
            let download = [
              tool, "get", "\(run.server.url("/" + name))", "-d", work, "--extract", "--retry", "0",
            ]
            let command: Command =
              switch right {
              case .root: Command(tool, Array(download.dropFirst()))
              case .otherUser: Command("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups"] + download)
              case .namespace:
                Command(
                  "unshare",
                  [
                    "--mount", "--propagation", "private", "bash", "-c",
                    "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro / && exec \"$@\"", run.folder.path,
                  ] + download)
              }
            let outcome = try await command.run()
            let inside = try run.folder.contents().filter { $0.hasPrefix("victim/") }
            #expect(inside == ["victim/precious"], "\(name): \(outcome.everything)")
            #expect(try run.folder.read("victim/precious") == Array("precious".utf8), "\(name)")
            // A later entry of a tar replaces an earlier one, a link as well, and a backslash is a character of a name.
            // Everything else is refused for what it is.
            if ["over-link.tar.gz", "folder-link.tar.gz", "backslash.tar.gz"].contains(name) { continue }
            #expect(outcome.status == 1, "\(name): \(outcome.everything)")
            #expect(
              !outcome.errors.contains("Read-only") && !outcome.errors.contains("Permission denied"),
              "\(name): \(outcome.everything)")
          }
        }
      }
    }
  }
#endif
