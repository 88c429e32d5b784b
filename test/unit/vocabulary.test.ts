/**
 * Words that this project no longer uses, in sources and docs. CONTRIBUTING has the glossary: one word for one thing,
 * and the field's own word where there is one.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../..')

interface Retired {
  readonly pattern: RegExp
  readonly use: string
  /** Only files whose path begins so; all files when absent. */
  readonly under?: readonly string[]
  /** Tests may have it: there it is a name in an example, or says what a server did. */
  readonly inTests?: true
}

const retired: readonly Retired[] = [
  { pattern: /\brooms?\b/i, use: 'module' },
  { pattern: /(?<!front-)\bdoors?\b/i, use: 'public API, index.ts, entrance', inTests: true },
  { pattern: /\bfaults?\b|\bfaulty\b|Faults?\b|\bfault[A-Z]/, use: 'error, validation error, violation' },
  { pattern: /\bjudg(?:e|es|ed|ing)\b|\bjudge[A-Z]/i, use: 'validate, evaluate, check' },
  { pattern: /\bstrangers?\b|\bstrangers[A-Z]/i, use: 'untrusted client, unmanaged object' },
  { pattern: /\blegs?\b|\bleg[A-Z]|Legs?\b/, use: 'upstream authorization step, side' },
  { pattern: /\bvaults?\b/i, use: 'upstream token store' },
  { pattern: /\btak(?:e|es|en|ing) up\b|\btakenUp\b/, use: 'reload, reloaded, hotReloadable' },
  { pattern: /\banew\b|Anew\b/i, use: 'again' },
  { pattern: /\bunder way\b|UnderWay\b/i, use: 'in flight' },
  { pattern: /\btold of\b/i, use: 'warned of, reported' },
  {
    pattern:
      /\b(?:Novelty|outlaw|Surroundings|setAside|echoChildren|patience\w*|patien(?:t|tly)|poke[ds]?|sweeps?|asker)\b/i,
    use: 'see the glossary',
  },
  { pattern: /\bold(?:er)? (?:HTTP\+SSE |SSE )?transport\b/i, use: 'HTTP+SSE (deprecated) transport' },
  { pattern: /\b(?:the|an|its|every|each|this|that|no|their|such|one|whose) answers?\b/i, use: 'response' },
  {
    pattern: /\bquestions? (?:to|for|of) (?:the |a )?(?:user|client|person)s?\b/i,
    use: 'server request, elicitation',
  },
  {
    pattern: /\bkept(?:[A-Z]\w*)?\b|Kept|\bkeepInDirectory\b/,
    use: 'stored, persisted, cached',
    inTests: true,
  },
  {
    pattern: /\b(?:persons?|people|programs?)\b/i,
    use: 'user or resource owner, client',
    under: ['runtime/authserver/', 'runtime/incoming/', 'docs/authorization-server.md'],
  },
  { pattern: /\bin clear\b/i, use: 'in plaintext' },
  { pattern: /\bpassed over\b/i, use: 'skipped' },
  { pattern: /(?<!there )\bis no (?:header|valid|URL|tool|number|duration)\b/i, use: 'is not a valid …' },
]

/** The glossary and this test name the words; the changelog tells history. */
const exempt = new Set(['CONTRIBUTING.md', 'CHANGELOG.md', 'test/unit/vocabulary.test.ts'])

function texts(): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0')
  return listed.filter(
    (path) =>
      /\.(?:tsx?|md|yaml|json|js)$/.test(path) &&
      /^(?:hooks|runtime|schemas|manifests|docs|test|[A-Z]+\.md)/.test(path) &&
      !/generated\/|\/crds\/|docs\/kinds\/|docs\/specification\/|^test\/.*\.(?:json|md|yaml)$/.test(path) &&
      !exempt.has(path),
  )
}

t.test('vocabulary: no retired word in sources and docs', async (t) => {
  const found = texts().flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, i) =>
        retired
          .filter(
            ({ under, inTests, pattern }) =>
              (under ?? ['']).some((start) => path.startsWith(start)) &&
              !(inTests && /^test\/(?!helpers\/)/.test(path)) &&
              pattern.test(line),
          )
          .map(({ pattern, use }) => `${path}:${i + 1}: "${pattern.exec(line)?.[0]}"; write ${use}`),
      ),
  )
  for (const line of found.slice(0, 200)) t.comment(line)
  t.equal(found.length, 0, `${found.length} uses of retired words`)
})
