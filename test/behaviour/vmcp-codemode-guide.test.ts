/** What docs/guides/code-mode.md shows, done: its configuration, and every program with the answer beside it. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { parseVmcpConfig } from '../../runtime/config/index.ts'
import { cedarProblems } from '../../schemas/cedar/index.ts'
import { connect } from '../helpers/mcp-clients.ts'
import { startRawBackend } from '../helpers/raw-backend.ts'
import { startTestVmcp } from '../helpers/vmcp.ts'

const page = readFileSync(resolve(import.meta.dirname, '../../docs/guides/code-mode.md'), 'utf8')

interface Block {
  readonly language: string
  readonly text: string
}

const blocks: readonly Block[] = [...page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(
  ([, language = '', text = '']) => ({ language, text }),
)

const ISSUES = [
  { number: 1, title: 'Crash at start', open: true },
  { number: 2, title: 'Typo', open: false },
  { number: 3, title: 'Slow search', open: true },
]
const COMMENTS = [7, 0, 2]

function schema(...names: readonly string[]) {
  return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])), required: names }
}

t.test('guide: the configuration and the policy are taken as they stand', (t) => {
  const yaml = blocks.find(({ language }) => language === 'yaml')?.text ?? ''
  t.same(parseVmcpConfig(yaml).codeMode, {
    enabled: true,
    stepLimit: 100_000,
    parallelMaxConcurrency: 10,
    toolCallTimeout: '30s',
  })
  const cedar = blocks.find(({ language }) => language === 'cedar')?.text ?? ''
  t.same(cedarProblems([cedar], '[]'), [])
  t.end()
})

t.test('guide: every program gives what stands beside it', async (t) => {
  const backend = await startRawBackend({
    tools: () => [
      JSON.stringify({ name: 'list-issues', description: 'Issues', inputSchema: schema('repo') }),
      JSON.stringify({ name: 'get-issue', description: 'One issue', inputSchema: schema('repo', 'number') }),
    ],
    answers: {
      'tools/call': ({ params }) => {
        const { number } = params['arguments'] as { number?: number }
        const value =
          params['name'] === 'list-issues'
            ? { result: ISSUES }
            : { ...ISSUES[Number(number) - 1], comments: COMMENTS[Number(number) - 1] }
        return JSON.stringify({ content: [], structuredContent: value })
      },
    },
  })
  const { aggregation, codeMode } = parse(blocks[0]?.text ?? '') as Record<string, unknown>
  const vmcp = await startTestVmcp({ tracker: backend.url }, { aggregation, codeMode })
  const client = await connect('sdk1', vmcp.url)
  t.teardown(async () => {
    await client.close()
    await Promise.all([vmcp.close(), backend.close()])
  })
  const data = JSON.parse(/With `data` `(\{.*?\})`/.exec(page)?.[1] ?? '{}') as Record<string, unknown>
  let programs = 0
  for (const [i, { language, text }] of blocks.entries()) {
    if (language !== 'python') continue
    programs++
    const result = await client.call('execute_tool_script', { script: text, data })
    const [first, second] = result['content'] as { text: string }[]
    const answers = blocks.slice(i + 1, i + 3)
    const end = answers.findIndex((block) => block.language !== 'json' && block.language !== 'text')
    for (const answer of end < 0 ? answers : answers.slice(0, end)) {
      if (answer.language === 'json') t.same(JSON.parse(first?.text ?? ''), JSON.parse(answer.text), text)
      else if (answer.text.startsWith('Script logs')) t.equal(second?.text, answer.text.trim(), text)
      else t.equal(first?.text, answer.text.trim(), text)
    }
  }
  t.equal(programs, 6)
})
