#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import Testing

  struct HTTPConfigurationTests {
    @Test(arguments: TestedSource.allCases)
    func theSummaryListsTheSettings(_ tested: TestedSource) {
      #expect(tested.source().name == tested.rawValue)
      #expect(tested.source().summary.isEmpty)
      let source = tested.source {
        $0.useHTTPProxy("proxy", 3128, ("me", "secret"))
        $0.useHTTP1Only()
      }
      #expect(source.summary == "HTTP/1.1 only, through http://proxy:3128")
    }
  }
#endif
