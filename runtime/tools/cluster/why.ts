/** `gatehouse cluster why` prints the findings about an object, a single cause, and the next step. */
import { environment } from '../../config/index.ts'
import { isColoured } from '../../../schemas/index.ts'
import { exitCode, painter, print, printJson } from '../../toolkit/terminal/output.ts'
import { oneLine, quantity } from '../../toolkit/terminal/plain-text.ts'
import { readFacts } from './facts.ts'
import type { WhyFinding } from './finding.ts'
import { findingsOf } from './findings.ts'
import { type ClusterFlags, openCluster, parseNamed } from './reader.ts'
import { type ObjectState, stateOf } from './state.ts'

export interface WhyFlags extends ClusterFlags {
  readonly output: 'text' | 'json'
}

interface Conclusion {
  /** True when there is no problem, or a rollout is in progress. */
  readonly isWell: boolean
  readonly cause: string
  readonly step: string | null
}

/** `command` is the command prefix for the printed next step. */
export async function clusterWhy(word: string, flags: WhyFlags, command: string): Promise<number> {
  const named = parseNamed(word)
  const facts = await readFacts(await openCluster(flags), named)
  const state = stateOf(facts.object)
  const findings = findingsOf(facts, `${command} why -n ${facts.namespace}`)
  const conclusion = conclude(state, findings)
  const { kind, name, namespace } = facts
  if (flags.output === 'json') {
    const object = { kind: kind.kind, namespace, name }
    printJson({ schema: 'gatehouse.dev/cluster-why/v1', object, state, findings, conclusion })
  } else {
    const paint = painter({ colour: isColoured(process.stdout, environment()) })
    const head = `${kind.kind} ${namespace}/${name}: ${readyText(state)}`
    print(
      [
        paint('bold', oneLine(head)),
        '',
        ...findingLines(findings, paint),
        '',
        ...conclusionLines(conclusion, paint),
      ].join('\n'),
    )
  }
  return conclusion.isWell ? exitCode.ok : exitCode.failed
}

const readyTexts = { True: 'ready', False: 'not ready', Unknown: 'unknown' } as const

function readyText({ ready, reason, rollout }: ObjectState): string {
  const more = [ready === 'True' ? '' : reason, rollout === 'none' ? '' : `rollout ${rollout}`].filter(
    (part) => part !== '',
  )
  return [readyTexts[ready], ...more].join(', ')
}

/** Selects the cause, which is the first failed finding. Prefers a failed pod to the workload that waits for it. */
export function conclude(state: ObjectState, findings: readonly WhyFinding[]): Conclusion {
  const failed = findings.filter(({ result }) => result === 'failed')
  const inWorkload =
    failed[0]?.section === 'workload' ? failed.find(({ section }) => section === 'pod') : undefined
  const first = specific(findings, failed[0]) ?? inWorkload ?? failed[0]
  if (first) return conclusionOf(first)
  if (state.ready === 'True' && state.rollout !== 'stalled') {
    const warnings = findings.filter(({ result }) => result === 'warning').length
    const noted = warnings === 0 ? '' : `; ${quantity(warnings, 'warning')} above`
    return { isWell: true, cause: `no problem found${noted}`, step: null }
  }
  const order = ['event', 'pod', 'workload', 'backend', 'refers to', 'spec'] as const
  const hint = order
    .map((wanted) => findings.find(({ section, result }) => section === wanted && result === 'warning'))
    .find((finding) => finding !== undefined)
  if (hint) return conclusionOf(hint)
  const unread = findings.filter(({ result }) => result === 'unknown')
  return {
    isWell: false,
    cause: `${state.reason}: ${state.message}`,
    step: unread.length > 0 ? 'run this command as a user with the permissions listed above' : null,
  }
}

/** Returns the failed reference that a summary condition points to. */
function specific(findings: readonly WhyFinding[], first: WhyFinding | undefined): WhyFinding | undefined {
  if (first?.section !== 'spec' || first.reason === undefined) return undefined
  const sumsUp = /NotValid$|NotReady$|Invalid$/.test(first.reason) && first.reason !== 'ConfigInvalid'
  return sumsUp
    ? findings.find(
        ({ section, result, message, object }) =>
          section === 'refers to' &&
          result === 'failed' &&
          message !== '' &&
          first.message.includes(object.split(' ')[1] ?? ''),
      )
    : undefined
}

function conclusionOf({ object, reason, message, step }: WhyFinding): Conclusion {
  return {
    isWell: false,
    cause: `${object}: ${message === '' ? 'is not ready' : message}${reason === undefined || message.includes(reason) ? '' : ` (${reason})`}`,
    step: step ?? null,
  }
}

const styles = { ok: 'green', warning: 'yellow', failed: 'red', unknown: 'yellow' } as const

function findingLines(findings: readonly WhyFinding[], paint: ReturnType<typeof painter>): readonly string[] {
  return findings.map(({ section, object, result, reason, message }) => {
    const why = reason === undefined || message.includes(reason) ? '' : `${reason}: `
    return `  ${paint(styles[result], result.padEnd(7))}  ${section.padEnd(9)}  ${oneLine(`${object}: ${why}${message}`.replace(/: $/, ''))}`
  })
}

function conclusionLines(
  { isWell, cause, step }: Conclusion,
  paint: ReturnType<typeof painter>,
): readonly string[] {
  const head = `${paint(isWell ? 'green' : 'red', isWell ? 'OK:' : 'Cause:')} ${oneLine(cause)}`
  return step === null ? [head] : [head, `${paint('bold', 'Next:')}  ${oneLine(step)}`]
}
