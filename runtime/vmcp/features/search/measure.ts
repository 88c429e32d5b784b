/**
 * Metrics and spans for tool search, including counters and durations.
 *
 * A tool name becomes a label only if the tool exists, because clients can call any name. Search texts are client data,
 * so a span contains search texts only if spans may contain tool arguments.
 * Source: design, `observe`; docs/guides/observability.md.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { isToolError, redactText, type SpanHandle, type Instruments } from '../../../observe/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { FindArguments } from './own-tools.ts'

export interface Figures {
  /** Number of tokens in all tools that were searched. */
  readonly baseline: number
  /** Number of tokens in the tools that the search found. */
  readonly returned: number
  /** Percentage of tokens saved; 0 if the searched set is empty. */
  readonly savings: number
  readonly results: number
  readonly degraded: boolean
}

const maxQueryChars = 200
const maxKnown = 2_000

export class Measure {
  readonly #telemetry: Instruments
  readonly #called = new Set<string>()

  constructor(telemetry: Instruments) {
    this.#telemetry = telemetry
  }

  /** Measures a search. `work` reports the results. */
  async search<T>(work: (done: (query: FindArguments, figures: Figures) => void) => Promise<T>): Promise<T> {
    const { metrics, tracer } = this.#telemetry
    return tracer.internal('optimizer.FindTool', undefined, async (span) => {
      const startedAt = performance.now()
      let figures: Figures | undefined
      metrics.optimizerFindToolRequests(1, {})
      try {
        return await work((query, found) => {
          figures = found
          this.#describe(span, query, found)
        })
      } finally {
        if (!figures || figures.degraded) metrics.optimizerFindToolErrors(1, {})
        metrics.optimizerFindToolDuration(secondsSince(startedAt), {})
        if (figures) {
          metrics.optimizerFindToolResults(figures.results, {})
          metrics.optimizerTokenSavings(figures.savings, {})
        }
      }
    })
  }

  #describe(span: SpanHandle, { description }: FindArguments, figures: Figures): void {
    if (!span.recording) return
    const query = this.#telemetry.spans.toolArguments
      ? redactText(description.slice(0, maxQueryChars))
      : undefined
    span.set({
      'optimizer.results': figures.results,
      'optimizer.baseline_tokens': figures.baseline,
      'optimizer.returned_tokens': figures.returned,
      'optimizer.degraded': figures.degraded,
      'optimizer.query': query,
    })
    if (figures.degraded) span.fail('EMBEDDING_FAILED')
  }

  /**
   * Measures a call. `exists` returns true if a tool with this name is known. `absent` returns true if an error means
   * that the tool does not exist.
   */
  async call(
    name: string,
    {
      exists,
      absent,
    }: { readonly exists: (name: string) => boolean; readonly absent: (failure: unknown) => boolean },
    work: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const { metrics, tracer } = this.#telemetry
    return tracer.internal('optimizer.CallTool', undefined, async (span) => {
      const startedAt = performance.now()
      let failed = true
      let missing = false
      try {
        const outcome = await work()
        failed = outcome.kind === 'error' || (outcome.kind === 'result' && isToolError(outcome.result))
        if (!failed && this.#called.size < maxKnown) this.#called.add(name)
        return outcome
      } catch (error) {
        missing = absent(error)
        throw error
      } finally {
        const known = !missing && (this.#called.has(name) || exists(name))
        const labels = { tool_name: known ? name : undefined }
        if (span.recording && known) span.set({ 'gen_ai.tool.name': name })
        metrics.optimizerCallToolRequests(1, labels)
        if (missing) metrics.optimizerCallToolNotFound(1, {})
        else if (failed) metrics.optimizerCallToolErrors(1, labels)
        metrics.optimizerCallToolDuration(secondsSince(startedAt), labels)
      }
    })
  }
}

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1000
}

export function notFound(name: string): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: `tool ${JSON.stringify(name)} not found` })
}
