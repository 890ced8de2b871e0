import DownpipeCore
import DownpipePOSIX
import HangLimit
import Testing

@Suite(.endsHangs)
struct NumberedNameTests {
  @Test(arguments: [
    ("film.mkv", "film (1).mkv"), ("logs.tar.gz", "logs (1).tar.gz"), ("a.b.tar.zst", "a.b (1).tar.zst"),
    ("LOGS.TAR.XZ", "LOGS (1).TAR.XZ"), ("README", "README (1)"), (".profile", ".profile (1)"),
    (".tar.gz", ".tar (1).gz"), ("tar.gz", "tar (1).gz"), ("ends.", "ends. (1)"), ("a.b.c", "a.b (1).c"),
    ("Mr. Smith goes home", "Mr. Smith goes home (1)"), ("x.averyveryverylongending", "x.averyveryverylongending (1)"),
    ("film (1).mkv", "film (1) (1).mkv"), ("ä.ö", "ä (1).ö"),
  ])
  func filesKeepTheirExtension(_ name: String, _ numbered: String) {
    #expect(NumberedName.make(name, 1, kind: .file) == numbered)
  }

  @Test func foldersHaveNoExtension() {
    #expect(NumberedName.make("release-1.2", 3, kind: .directory) == "release-1.2 (3)")
  }

  @Test func longNamesAreShortenedAndKeepTheirExtension() {
    let name = NumberedName.make(String(repeating: "ä", count: 125) + ".tar.gz", 12, kind: .file)
    #expect(name.utf8.count <= 255)
    #expect(name.hasSuffix("ä (12).tar.gz"))
    let marks = NumberedName.make("a" + String(repeating: "\u{301}", count: 127), 1, kind: .file)
    #expect(marks.utf8.count <= 255)
    #expect(marks.hasSuffix(" (1)"))
  }

  @Test func freeNumbersAreFoundInFewSteps() {
    for count in [0, 1, 2, 3, 7, 8, 999_999] {
      var steps = 0
      let free = NumberedName.firstFree { number in
        steps += 1
        return number <= count
      }
      #expect(free == count + 1)
      #expect(steps <= 42)
    }
  }

  @Test func gapsStillGiveAFreeNumber() {
    let taken: Set = [1, 2, 4, 5, 8]
    #expect(!taken.contains(NumberedName.firstFree { taken.contains($0) }))
  }
}
