/** Policies: their text, decision counts and problems, and the reasons why a call is allowed or denied. */
import { useEffect, useRef } from 'preact/hooks'
import type { Me, Policies } from '../../api.ts'
import { get } from '../data/client.ts'
import { useResource } from '../data/use-resource.ts'
import { count } from '../parts/format.ts'
import { Mark } from '../parts/marks.tsx'
import { Loaded, Notice } from '../parts/notices.tsx'
import { Foreign, LongText } from '../parts/text.tsx'
import { may } from '../shell/permissions.ts'
import { route } from '../shell/router.ts'
import { texts } from '../texts.ts'
import { Explain } from './explain.tsx'

export function PoliciesPage({ me }: { readonly me: Me }) {
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{texts.pages.policies}</h1>
      </div>
      {may(me, 'explain') ? <Explain me={me} /> : undefined}
      {may(me, 'policies') ? <List /> : undefined}
    </>
  )
}

function List() {
  const resource = useResource('policies', (signal) => get<Policies>('policies', signal))
  return (
    <section aria-labelledby="policies">
      <h2 id="policies">{texts.policies.set}</h2>
      <Loaded resource={resource}>
        {({ enabled, items, problems, decisionPoint }) => (
          <>
            {enabled ? undefined : (
              <Notice tone="warn">
                <p>{texts.policies.off}</p>
              </Notice>
            )}
            {problems.map((problem) => (
              <Notice key={problem} tone="bad">
                <p>
                  <Foreign text={problem} most={1000} />
                </p>
              </Notice>
            ))}
            {decisionPoint === undefined ? undefined : (
              <p>
                {texts.policies.external} <Foreign text={decisionPoint} most={2048} />
              </p>
            )}
            {enabled && items.length === 0 && decisionPoint === undefined ? (
              <p>{texts.policies.none}</p>
            ) : undefined}
            {items.slice(0, 200).map((policy) => (
              <Policy key={policy.id} policy={policy} />
            ))}
          </>
        )}
      </Loaded>
    </section>
  )
}

function Policy({
  policy: { id, effect, text, shadow, decided },
}: {
  readonly policy: Policies['items'][number]
}) {
  const asked = route.value.query.get('policy') === id
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (asked) heading.current?.focus()
  }, [asked])
  return (
    <article class={asked ? 'policy asked' : 'policy'}>
      <h3 ref={heading} tabIndex={-1}>
        <Mark
          shape={effect === 'permit' ? 'check' : 'barred'}
          tone={effect === 'permit' ? 'good' : 'warn'}
          word={texts.policies.effect[effect]}
        />{' '}
        <Foreign text={id} most={100} />
        <span class="soft small">
          {' '}
          {(shadow ? texts.policies.shadowDecided : texts.policies.decided)(count(decided), decided)}
          {shadow ? ` · ${texts.policies.shadow}` : ''}
        </span>
      </h3>
      <LongText text={text} label={texts.policies.textOf(id)} code />
    </article>
  )
}
