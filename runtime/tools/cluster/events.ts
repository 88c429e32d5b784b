/**
 * Returns findings from the Warning Events for an object, its workloads and its pods, newest first and without
 * duplicates. Events from the last hour are reported as warnings.
 */
import { type Fields, fieldsOf } from '../../../schemas/index.ts'
import type { ObjectFacts } from './facts.ts'
import { type WhyFinding, stepOf } from './finding.ts'
import { ageText } from './table.ts'
import { at, textAt } from '../../toolkit/cluster/objects.ts'

const maxEvents = 10
const hourMs = 3_600_000

export function eventFindings(facts: ObjectFacts, now: number): readonly WhyFinding[] {
  const own = facts.events.filter((event) => isOf(facts, event))
  const sorted = own.toSorted((a, b) => timeOf(b) - timeOf(a))
  const unique = new Map<string, { readonly event: Fields; count: number }>()
  for (const event of sorted) {
    const key = [objectOf(event), textAt(event, 'reason'), textAt(event, 'message')].join('\n')
    const known = unique.get(key)
    if (known) known.count += countOf(event)
    else unique.set(key, { event, count: countOf(event) })
  }
  const all = [...unique.values()]
  return all.slice(0, maxEvents).map(({ event, count }) => {
    const age = Math.max(0, now - timeOf(event))
    const reason = textAt(event, 'reason') ?? ''
    const times = count > 1 ? `, ${count} times` : ''
    return {
      section: 'event',
      object: objectOf(event),
      result: age <= hourMs ? 'warning' : 'ok',
      reason,
      message: `${ageText(age)} ago${times}: ${textAt(event, 'message') ?? ''}`,
      ...stepOf(reason),
    }
  })
}

function objectOf(event: Fields): string {
  return `${textAt(event, 'involvedObject', 'kind') ?? ''} ${textAt(event, 'involvedObject', 'name') ?? ''}`
}

function isOf({ kind, name, workloads }: ObjectFacts, event: Fields): boolean {
  const object = objectOf(event)
  if (object === `${kind.kind} ${name}`) return true
  return workloads.some(({ kind: workload, object: { metadata }, pods }) => {
    const { name: own } = fieldsOf(metadata)
    if (object === `${workload} ${String(own)}`) return true
    // Events about a Deployment's rejected pods refer to its ReplicaSet.
    const set = `ReplicaSet ${String(own)}-`
    if (
      workload === 'Deployment' &&
      object.startsWith(set) &&
      /^[a-z0-9]{1,10}$/.test(object.slice(set.length))
    )
      return true
    return (
      typeof pods !== 'string' &&
      pods.some((pod) => object === `Pod ${textAt(pod, 'metadata', 'name') ?? ''}`)
    )
  })
}

function timeOf(event: Fields): number {
  const texts = [
    textAt(event, 'series', 'lastObservedTime'),
    textAt(event, 'lastTimestamp'),
    textAt(event, 'eventTime'),
    textAt(event, 'metadata', 'creationTimestamp'),
  ]
  return texts.map((text) => Date.parse(text ?? '')).find((time) => !Number.isNaN(time)) ?? 0
}

function countOf(event: Fields): number {
  const count = at(event, 'series', 'count') ?? event['count']
  return typeof count === 'number' ? count : 1
}
