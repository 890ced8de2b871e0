#if Archive
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeArchive

  /// Archives of cpio have the data of a file with several names at the last one.
  @Suite(.endsHangs)
  struct CPIOTests {
    @Test("hard links keep the permissions of their file", arguments: [0o100755, 0o100644, 0o100444])
    func permissions(_ mode: Int) async throws {
      var cpio = CPIOBuilder()
      cpio.add("a", inode: 7, links: 2, mode: mode)
      cpio.add("b", [1, 2, 3], inode: 7, links: 2, mode: mode)
      for modes in [Unarchive.Modes.executable, .keep] {
        let bench = try Bench()
        #expect(
          try await bench.unpack(cpio.archive, with: Unarchive(modes: modes)) == [
            "a": .file([1, 2, 3]), "b": .file([1, 2, 3]),
          ])
        var plain = TarBuilder()
        plain.add("a", [1, 2, 3], mode: mode & 0o777)
        let other = try Bench()
        _ = try await other.unpack(plain.archive, with: Unarchive(modes: modes))
        for name in ["a", "b"] {
          #expect(try Bench.status(bench.path(name)).st_mode == Bench.status(other.path("a")).st_mode)
        }
      }
    }

    @Test("the first name gets the data if the last one is left out")
    func leftOut() async throws {
      func archive(_ first: String, _ last: String) -> [UInt8] {
        var cpio = CPIOBuilder()
        cpio.add(first, inode: 7, links: 2)
        cpio.add(last, [1, 2, 3], inode: 7, links: 2)
        return cpio.archive
      }
      let file = ["a": Found.file([1, 2, 3])]
      #expect(try await Bench().unpack(archive("a", "b"), with: Unarchive(links: .skip)) == file)
      #expect(try await Bench().unpack(archive("a", "b"), with: Unarchive(except: ["b"])) == file)
      #expect(try await Bench().unpack(archive("a", "b"), with: Unarchive(only: ["a"])) == file)
      #expect(try await Bench().unpack(archive("x/a", "y/a"), with: Unarchive(flattening: true)) == file)
      #expect(try await Bench().unpack(archive("x/a", "b"), with: Unarchive(strippingComponents: 1)) == file)
      #expect(try await Bench().unpack(archive("a", "a")) == file)
      // The first name is left out: there is nothing to link to.
      #expect(try await Bench().failure(archive("a", "b"), with: Unarchive(except: ["a"]))?.code == .processing)
      #expect(
        try await Bench().failure(archive("a", "x/b"), with: Unarchive(strippingComponents: 1))?.code == .processing)
    }

    @Test("names that never come are bounded, those that have come are not", arguments: [0o100644, 0o040755])
    func openLinks(_ mode: Int) async throws {
      var open = CPIOBuilder()
      for number in 0...30_000 { open.add("f\(number)", inode: number + 1, links: 2, mode: mode) }
      let error = try await Bench().failure(open.archive, with: Unarchive(only: ["none"]))
      #expect(error?.code == .tooLarge && error?.message.contains("other names") == true)
      var closed = CPIOBuilder()
      for number in 0...30_000 {
        for name in ["a", "b"] { closed.add("\(name)\(number)", inode: number + 1, links: 2, mode: mode) }
      }
      // Nothing was chosen.
      #expect(try await Bench().failure(closed.archive, with: Unarchive(only: ["none"]))?.code == .processing)
    }
  }
#endif
