/** Metrics of several processes on one page. */
import t from 'tap'
import { MergedPages } from '../../../schemas/metrics/index.ts'

const page = (calls: number, more = ''): string =>
  `# HELP c_total Calls\n# TYPE c_total counter\nc_total{m="a b"} ${calls}\n` +
  `# HELP h_seconds Times\n# TYPE h_seconds histogram\nh_seconds_bucket{le="+Inf"} ${calls}\nh_seconds_sum ${calls / 2}\n${more}`
const gauge = (name: string, value: number | string): string =>
  `# HELP ${name} G\n# TYPE ${name} gauge\n${name} ${value}\n`

t.test('counters and histograms are added up, and keep the values of exited processes', async (t) => {
  const pages = new MergedPages()
  t.equal(
    pages.render(
      new Map([
        ['1', page(2)],
        ['2', page(3)],
      ]),
    ),
    page(5),
  )
  t.equal(
    pages.render(
      new Map([
        ['1', page(4)],
        ['2', page(3)],
      ]),
    ),
    page(7),
  )
  t.equal(pages.render(new Map([['1', page(4)]])), page(7), 'the process has exited')
  t.equal(
    pages.render(
      new Map([
        ['1', page(4)],
        ['3', page(1)],
      ]),
    ),
    page(8),
    'another process replaced it',
  )
  t.equal(pages.render(new Map()), page(8))
})

t.test(
  'gauges: amounts are added up, times use the earliest value, and all others use the greatest',
  async (t) => {
    const merged = (name: string, values: readonly (number | string)[]) =>
      new MergedPages().render(new Map(values.map((value, i) => [String(i), gauge(name, value)])))
    t.equal(merged('gatehouse_vmcp_sessions', [2, 3]), gauge('gatehouse_vmcp_sessions', 5))
    t.equal(merged('gatehouse_mcp_active_connections', [2, 3]), gauge('gatehouse_mcp_active_connections', 5))
    t.equal(merged('process_resident_memory_bytes', [2, 3]), gauge('process_resident_memory_bytes', 5))
    t.equal(merged('gatehouse_vmcp_backend_health', [0, 1, 0]), gauge('gatehouse_vmcp_backend_health', 1))
    t.equal(merged('process_start_time_seconds', [7, 5]), gauge('process_start_time_seconds', 5))
    t.equal(merged('x', ['+Inf', 1]), gauge('x', '+Inf'))
    t.equal(merged('x', ['-Inf', '-Inf']), gauge('x', '-Inf'))
  },
)
