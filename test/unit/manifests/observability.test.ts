/** Alert rules and dashboards: their metrics exist, each alert has a page, and promtool accepts them. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import {
  alertRules,
  type MetricRow,
  programMetrics,
  prometheusName,
  runbookPath,
} from '../../../schemas/metrics/index.ts'

const root = resolve(import.meta.dirname, '../../..')
const folder = join(root, 'manifests/observability')
const cases = join(root, 'test/fixtures/alerts/cases.yaml')
const noPromtool: string | false =
  spawnSync('promtool', ['--version']).status === 0
    ? false
    : 'promtool is not installed (Debian package prometheus): the rules are not checked by it here'

const rows = new Map<string, MetricRow>(
  Object.values(programMetrics)
    .flat()
    .map((row) => [prometheusName(row), row]),
)

/** PromQL keywords that look like metric names. */
const words = new Set([
  'sum',
  'by',
  'rate',
  'increase',
  'histogram_quantile',
  'time',
  'max',
  'unless',
  'and',
  'le',
])

/**
 * Checks that the table contains every metric of a query, with the parts of histograms and the labels that the query
 * uses.
 */
function check(t: Test, query: string, program?: keyof typeof programMetrics): void {
  const labels = new Set(
    [...query.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/)),
  )
  const bare = query.replaceAll(/by \([^)]*\)/g, '').replaceAll(/\$__rate_interval|\[[^\]]*\]/g, '')
  const named = [...bare.matchAll(/([a-z_]{3,})(\{[^}]*\})?/g)].filter(([, name = '']) => !words.has(name))
  t.ok(named.length > 0, query)
  for (const [, name = '', matchers = ''] of named) {
    const row = rows.get(name) ?? rows.get(name.replace(/_(?:count|bucket|sum)$/, ''))
    t.ok(row, `${name} is a metric`)
    if (!row) continue
    if (program) t.ok(programMetrics[program].includes(row), `${name} is a metric of ${program}`)
    const known = new Set([...row.labels.map((label) => label.replaceAll('.', '_')), 'job', 'instance', 'le'])
    for (const [, label = ''] of matchers.matchAll(/[{,]([a-z_]+)[=!]/g))
      t.ok(known.has(label), `${name} ${label}`)
    for (const label of labels) t.ok(known.has(label), `${name} has ${label}`)
  }
}

t.test('alerts use existing metrics and labels, and each has a page', async (t) => {
  for (const alert of alertRules) {
    check(t, alert.expr)
    t.ok(existsSync(join(root, 'docs', runbookPath(alert))), runbookPath(alert))
    t.ok(alert.steps.length > 0)
  }
  const pages = readdirSync(join(root, 'docs/reference/runbooks'))
  t.equal(pages.length, alertRules.length + 1, 'no page without an alert')
})

for (const program of ['vmcp', 'proxy', 'attach', 'authserver', 'hooks'] as const) {
  t.test(`the dashboard of ${program} uses metrics of that program`, async (t) => {
    const { panels } = JSON.parse(readFileSync(join(folder, `dashboard-${program}.json`), 'utf8')) as {
      panels: { title: string; targets: { expr: string }[] }[]
    }
    t.ok(panels.length >= 3)
    t.equal(new Set(panels.map(({ title }) => title)).size, panels.length)
    for (const { targets } of panels) for (const { expr } of targets) check(t, expr, program)
  })
}

t.test('the object for the operator has the same rules as the file', async (t) => {
  const read = (name: string): unknown => parse(readFileSync(join(folder, name), 'utf8'))
  t.match(read('prometheus-rule.yaml'), { kind: 'PrometheusRule', spec: read('alerts.yaml') })
})

t.test('every alert has a test case', async (t) => {
  const text = readFileSync(cases, 'utf8')
  for (const { name } of alertRules) t.match(text, name)
})

t.test('promtool accepts the rules, and they fire in the test cases', { skip: noPromtool }, async (t) => {
  for (const args of [
    ['check', 'rules', join(folder, 'alerts.yaml')],
    ['test', 'rules', cases],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
    t.equal(status, 0, `${stdout}${stderr}`)
  }
})

t.test('promtool accepts every query of the dashboards', { skip: noPromtool }, async (t) => {
  const queries = readdirSync(folder)
    .filter((name) => name.startsWith('dashboard-'))
    .flatMap((name) =>
      (
        JSON.parse(readFileSync(join(folder, name), 'utf8')) as { panels: { targets: { expr: string }[] }[] }
      ).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m'))),
    )
  const rules = { groups: [{ name: 'g', rules: queries.map((expr, i) => ({ record: `q${i}`, expr })) }] }
  const temporary = mkdtempSync(join(tmpdir(), 'gatehouse-queries-'))
  t.teardown(() => rmSync(temporary, { recursive: true, force: true }))
  const file = join(temporary, 'queries.yaml')
  writeFileSync(file, JSON.stringify(rules))
  const { status, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })
  t.equal(status, 0, stderr)
})
