/** Tool search in isolation: words, rankings, settings, and errors at the start. */
import fc from 'fast-check'
import t from 'tap'
import { checkStart } from '../../../../runtime/vmcp/index.ts'
import { fuse } from '../../../../runtime/vmcp/features/search/fusion.ts'
import { KeywordIndex } from '../../../../runtime/vmcp/features/search/keywords.ts'
import { nearest } from '../../../../runtime/vmcp/features/search/nearest.ts'
import { ArgumentError, readCall, readFind } from '../../../../runtime/vmcp/features/search/own-tools.ts'
import { searchSettings } from '../../../../runtime/vmcp/features/search/settings.ts'
import { partWords, searchWords } from '../../../../runtime/vmcp/features/search/words.ts'
import type { Optimizer } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

t.test('searchWords: keywords come first, then the description without filler words', async (t) => {
  t.same(searchWords('Send a message', ['open issue', 'Issue', 'DATA']), ['open', 'issue'])
  t.same(searchWords('Send a message to the team', ['tool', 'schema']), ['Send', 'message', 'team'])
  t.same(searchWords('Which tool should I use?', []), ['Which', 'tool', 'should', 'I', 'use?'])
  t.same(searchWords(' ... -- ', ['***']), [])
  t.equal(searchWords('', [Array.from({ length: 999 }, (_, i) => `w${i}`).join(' ')]).length, 100)
})

t.test('a long description is searched to its last word', async (t) => {
  const index = new KeywordIndex()
  t.teardown(() => index.close())
  const tools = ['list_repositories', 'send_mail', 'create_invoice', 'rotate_backup_keys']
  tools.forEach((name, at) => index.add(at, { name, description: 'Does it', parameters: [] }))
  index.finish()
  const talk = Array.from({ length: 60 }, (_, i) => `preamble${i}`).join(' ')
  t.same(index.search(searchWords(`${talk}, and finally rotate the keys`, []), 8), [3])
  t.same(index.search(searchWords('', [talk, 'invoice']), 8), [2])
})

t.test('words that occur in very many tools do not slow down a search', async (t) => {
  const index = new KeywordIndex()
  t.teardown(() => index.close())
  const common = Array.from({ length: 60 }, (_, i) => `common${i}`)
  for (let at = 0; at < 2_000; at++)
    index.add(at, {
      name: `tool${at}`,
      description: common.join(' '),
      parameters: at === 1_234 ? ['rare'] : [],
    })
  index.finish()
  t.equal(index.search([...common, 'rare'], 8)[0], 1_234)
  t.equal(index.search(common, 8).length, 8)
  t.equal(
    index.search(
      Array.from({ length: 100 }, (_, i) => `a.b-${i}CamelCase/x`),
      8,
    ).length,
    0,
  )
})

t.test('partWords: splits names into their parts', async (t) => {
  for (const [name, parts] of [
    ['getUserById', 'get User By Id'],
    ['HTTPServer2Start', 'HTTP Server2 Start'],
    ['create_issue', 'create_issue'],
    ['ÜbergrößeÄndern', 'Übergröße Ändern'],
  ] as const)
    t.equal(partWords(name), parts)
})

t.test('fuse: ranks by weight, prefers agreement, and fills up the rest', async (t) => {
  const semantic = [1, 2, 3, 4, 5, 6, 7, 8]
  const keyword = [11, 12, 13, 14, 15, 16, 17, 18]
  const ofMeaning = (list: number[]) => list.filter((position) => position < 10).length
  t.equal(ofMeaning(fuse(semantic, keyword, 0.5, 8)), 4)
  t.equal(ofMeaning(fuse(semantic, keyword, 0.7, 10)), 7)
  t.same(fuse(semantic, keyword, 0, 3), [11, 12, 13])
  t.same(fuse(semantic, keyword, 1, 3), [1, 2, 3])
  t.same(fuse([1, 2], [2, 1], 0.5, 8), [1, 2], 'each once')
  t.same(
    fuse([1, 2, 9], [11, 12, 9], 0.5, 3)[2],
    9,
    'an item in both rankings comes before the second item of one ranking',
  )
  t.equal(fuse(semantic, [1], 0.5, 8).length, 8, 'the other ranking fills up')
  t.same(fuse([], [], 0.5, 8), [])
})

t.test('nearest: sorts by distance, and skips distant vectors and vectors of another length', async (t) => {
  const vectors = [
    [1, 0],
    [0, 1],
    [-1, 0],
    [0.6, 0.8],
    [1, 0, 0],
    [0, 0],
  ].map((v) => Float32Array.from(v))
  const query = Float32Array.from([1, 0])
  t.same(nearest(query, vectors, 2, 10), [0, 3, 1, 5, 2])
  t.same(nearest(query, vectors, 1, 10), [0, 3, 1, 5], 'a zero vector is at distance 1')
  t.same(nearest(query, vectors, 0.4, 10), [0, 3])
  t.same(nearest(query, vectors, 0, 10), [0])
  t.same(nearest(query, vectors, 2, 1), [0])
})

t.test('KeywordIndex: a match in the name has the highest score', async (t) => {
  const index = new KeywordIndex()
  index.add(0, { name: 'alpha', description: 'Moves a file', parameters: [] })
  index.add(1, { name: 'move_file', description: 'Something else', parameters: [] })
  index.add(2, { name: 'beta', description: 'Nothing of it', parameters: ['fileName'] })
  index.finish()
  t.same(index.search(['file'], 10), [1, 0, 2])
  t.same(index.search(['file-name'], 10), [2], 'a word with separators is a phrase')
  t.same(index.search([], 10), [])
  index.close()
  t.same(index.search(['file'], 10), [], 'closed: nothing')
})

t.test('settings: defaults, and values that disable the semantic search', async (t) => {
  proves(
    '3.limit.optimizer.embeddingServiceTimeout',
    '3.limit.optimizer.maxToolsToReturn',
    '3.limit.optimizer.semanticDistanceThreshold',
  )
  const of = (optimizer: Record<string, unknown>) =>
    searchSettings(vmcpConfig({}, { optimizer }).optimizer as Optimizer, {
      GATEHOUSE_EMBEDDING_API_KEY: 'k',
    })
  t.match(of({}), { maxTools: 8, semanticRatio: 0, maxDistance: 1, service: undefined })
  const tei = of({ embeddingService: 'http://embed:8080/' })
  t.match(tei, {
    semanticRatio: 0.5,
    service: { protocol: 'tei', url: 'http://embed:8080', model: '', timeoutMs: 30_000, apiKey: undefined },
  })
  t.equal(of({ embeddingService: 'http://embed', hybridSearchSemanticRatio: '0' }).service, undefined)
  const compat = {
    embeddingProvider: 'compat',
    embeddingService: 'https://embed/v1',
    embeddingModel: 'small',
    embeddingServiceTimeout: '24h',
  }
  t.match(of(compat).service, { model: 'small', timeoutMs: 86_400_000 })
  t.equal(of(compat).service?.apiKey?.reveal(), 'k')
  t.notMatch(JSON.stringify(of(compat)), '"k"')
})

t.test('start: every error of the settings is reported', async (t) => {
  const refused = (optimizer: unknown, ...said: RegExp[]) => {
    try {
      checkStart(vmcpConfig({}, { optimizer }), { env: { GATEHOUSE_EMBEDDING_API_KEY: 'a\nb' } })
      t.fail(`taken: ${JSON.stringify(optimizer)}`)
    } catch (error) {
      for (const one of said) t.match((error as Error).message, one, JSON.stringify(optimizer))
      t.notMatch((error as Error).message, 'a\nb')
    }
  }
  refused(
    { embeddingProvider: 'compat' },
    /optimizer\.embeddingModel: embeddingModel is required/,
    /optimizer\.embeddingService: embeddingService is required/,
  )
  refused(
    { hybridSearchSemanticRatio: '1.5', semanticDistanceThreshold: '2.1', maxToolsToReturn: 51 },
    /maxToolsToReturn/,
  )
  refused({ hybridSearchSemanticRatio: '1.5' }, /must be between 0\.0 and 1\.0/)
  refused({ semanticDistanceThreshold: '2.1' }, /must be between 0 and 2/)
  refused({ hybridSearchSemanticRatio: 'half' }, /a decimal number in quotes/)
  refused({ embeddingServiceTimeout: '0s' }, /optimizer\.embeddingServiceTimeout: must be greater than zero/)
  refused({ maxToolsToReturn: 0 }, /maxToolsToReturn/)
  refused({ embeddingHeaders: { 'X-A': 'b' } }, /embeddingHeaders is only for embeddingProvider compat/)
  const compat = { embeddingProvider: 'compat', embeddingService: 'http://h/v1', embeddingModel: 'm' }
  refused(
    { ...compat, embeddingHeaders: { authorization: 'x' } },
    /optimizer\.embeddingHeaders: a restricted header cannot be set/,
  )
  refused(
    { ...compat, embeddingHeaders: { 'Content-Type': 'x' } },
    /optimizer\.embeddingHeaders: a restricted header cannot be set/,
  )
  refused({ ...compat, embeddingHeaders: { 'a b': 'x' } }, /not an HTTP header name/)
  refused(
    { ...compat, embeddingService: 'http://user:word@h/v1?q=1' },
    /optimizer\.embeddingService: must not contain credentials/,
    /optimizer\.embeddingService: must be a base URL without query or fragment/,
    /GATEHOUSE_EMBEDDING_API_KEY: contains characters/,
  )
  checkStart(vmcpConfig({}, { optimizer: {} }), { env: {} })
  checkStart(vmcpConfig({}, { optimizer: compat }), { env: { GATEHOUSE_EMBEDDING_API_KEY: 'key' } })
})

t.test('find_tool and call_tool: random arguments cause no exception', async (t) => {
  const index = new KeywordIndex()
  index.add(0, { name: 'alpha_beta', description: 'Gamma', parameters: ['deltaEpsilon'] })
  index.finish()
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.string({ unit: 'binary' })), (text, keywords) => {
      index.search(searchWords(text, keywords), 8)
    }),
  )
  fc.assert(
    fc.property(fc.mixedCase(fc.constantFrom('alpha', 'beta', 'GAMMA', 'delta', 'epsilon')), (word) => {
      return index.search(searchWords('', [word.toLowerCase()]), 8)[0] === 0
    }),
  )
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const raw = Buffer.from(JSON.stringify(value))
      for (const read of [readFind, readCall]) {
        try {
          read(raw)
        } catch (error) {
          if (!(error instanceof ArgumentError)) throw error
        }
      }
    }),
  )
  index.close()
  t.pass('every one was read or refused')
})

t.test('call_tool: the name and parameters are forwarded as they were read', async (t) => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1 }),
      fc.dictionary(fc.string(), fc.jsonValue()),
      (name, parameters) => {
        const { tool_name: _, ...rest } = parameters
        const straight = readCall(Buffer.from(JSON.stringify({ tool_name: name, parameters })))
        const hoisted = readCall(Buffer.from(JSON.stringify({ parameters: { ...rest, tool_name: name } })))
        return (
          straight.name === name &&
          straight.parameters.toString() === JSON.stringify(parameters) &&
          hoisted.name === name &&
          JSON.stringify(JSON.parse(hoisted.parameters.toString())) === JSON.stringify(rest)
        )
      },
    ),
  )
  t.pass('for all')
})
