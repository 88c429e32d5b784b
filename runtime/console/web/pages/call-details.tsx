/**
 * Shows one call: the caller, the name, the backend, the reason for a denial or failure and, for permitted users, the
 * payload.
 */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { CallView, Me, PayloadView } from '../../api.ts'
import { get } from '../data/client.ts'
import { indented } from '../data/json-text.ts'
import { useResource } from '../data/use-resource.ts'
import { duration } from '../parts/format.ts'
import { OutcomeMark } from '../parts/marks.tsx'
import { Loaded } from '../parts/notices.tsx'
import { Foreign, LongText, Time } from '../parts/text.tsx'
import { may } from '../shell/permissions.ts'
import { hrefOf, pathPart } from '../shell/router.ts'
import { texts } from '../texts.ts'

const actions: Readonly<Record<string, string>> = {
  'tools/call': 'call_tool',
  'prompts/get': 'get_prompt',
  'resources/read': 'read_resource',
}

export function CallDetails({ me, call }: { readonly me: Me; readonly call: CallView }) {
  const action = actions[call.method]
  return (
    <div class="details">
      <dl class="facts">
        {factsOf(call).map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Denial call={call} />
      <p class="buttons">
        {may(me, 'explain') && action !== undefined && call.name !== undefined ? (
          <a href={hrefOf(['policies'], { action, name: call.name, caller: call.caller?.sub })}>
            {texts.calls.explain}
          </a>
        ) : undefined}
        {call.method === 'tools/call' && call.name !== undefined && may(me, 'tools') ? (
          <a href={hrefOf(['tools', call.name])}>{texts.calls.itsTool}</a>
        ) : undefined}
      </p>
      <PayloadPart call={call} />
    </div>
  )
}

function factsOf(call: CallView): readonly (readonly [string, ComponentChildren])[] {
  const { caller, error } = call
  const text = (value: string | undefined): ComponentChildren =>
    value === undefined ? undefined : <Foreign text={value} most={500} />
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    [texts.calls.time, <Time at={call.at} exact />],
    [texts.calls.outcome, <OutcomeMark outcome={call.outcome} />],
    [texts.calls.took, call.ms === undefined ? undefined : duration(call.ms)],
    [texts.calls.method, text(call.method)],
    [texts.calls.name, text(call.name)],
    [texts.calls.original, call.original === call.name ? undefined : text(call.original)],
    [texts.backend, text(call.backend)],
    [texts.calls.caller, text([caller?.name, caller?.sub].filter(Boolean).join(', ') || undefined)],
    [texts.calls.actor, text(caller?.actor)],
    [texts.calls.client, text(caller?.client)],
    [texts.calls.session, text(call.session)],
    [texts.calls.era, text(call.era)],
    [texts.calls.code, error?.code === undefined ? undefined : String(error.code)],
    [texts.calls.error, text(error?.message)],
    [texts.calls.trace, text(call.trace)],
  ]
  return facts.filter(([, value]) => value !== undefined)
}

function Denial({ call: { denied } }: { readonly call: CallView }) {
  if (denied === undefined) return null
  const { by, policies = [] } = denied
  return (
    <p>
      {texts.calls.deniedBy(texts.deniedBy[by] ?? by)}{' '}
      {by === 'policy' && policies.length === 0 ? texts.calls.noPermit : undefined}
      {policies.map((id, i) => (
        <span key={id}>
          {i > 0 ? ', ' : ''}
          <a href={hrefOf(['policies'], { policy: id })}>
            <Foreign text={id} most={100} />
          </a>
        </span>
      ))}
    </p>
  )
}

function PayloadPart({ call }: { readonly call: CallView }) {
  const [open, setOpen] = useState(false)
  const { payload, id } = call
  if (payload !== 'recorded') return <p class="soft">{texts.calls.payload[payload]}</p>
  if (!open)
    return (
      <button type="button" onClick={() => setOpen(true)}>
        {texts.calls.showPayload}
      </button>
    )
  return <Contents id={id} />
}

function Contents({ id }: { readonly id: string }) {
  const path = `calls/${pathPart(id)}/payload`
  const resource = useResource(path, (signal) => get<PayloadView>(path, signal))
  return (
    <Loaded resource={resource}>
      {({ arguments: sent, result, truncated }) => (
        <>
          <h2>{texts.calls.arguments}</h2>
          <LongText text={indented(sent ?? texts.calls.nothing)} label={texts.calls.arguments} code />
          <h2>{texts.calls.result}</h2>
          <LongText text={indented(result ?? texts.calls.nothing)} label={texts.calls.result} code />
          {truncated ? <p class="soft">{texts.calls.truncated}</p> : undefined}
        </>
      )}
    </Loaded>
  )
}
