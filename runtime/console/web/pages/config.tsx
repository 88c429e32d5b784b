/**
 * Config: configuration problems and their fixes, then the running configuration, with references instead of secrets.
 */
import type { ConfigView } from '../../api.ts'
import { get } from '../data/client.ts'
import { useResource } from '../data/use-resource.ts'
import { Mark } from '../parts/marks.tsx'
import { Copyable, Loaded } from '../parts/notices.tsx'
import { Foreign } from '../parts/text.tsx'
import { texts } from '../texts.ts'

export function ConfigPage() {
  const resource = useResource('config', (signal) => get<ConfigView>('config', signal))
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{texts.pages.config}</h1>
        <button type="button" onClick={resource.reload}>
          {texts.reload}
        </button>
      </div>
      <Loaded resource={resource}>
        {({ effective, problems }) => (
          <>
            <Problems problems={problems} />
            <h2>{texts.config.effective}</h2>
            <p class="soft">{texts.config.secrets}</p>
            <Copyable text={effective} label={texts.config.effective} block />
          </>
        )}
      </Loaded>
    </>
  )
}

function Problems({ problems }: { readonly problems: ConfigView['problems'] }) {
  if (problems.length === 0)
    return (
      <p>
        <Mark shape="check" tone="good" word={texts.config.noProblems} />
      </p>
    )
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">{texts.overview.problems(problems.length)}</h2>
      <ul class="problems">
        {problems.slice(0, 200).map(({ path, code, message, fix }, i) => (
          <li key={i}>
            <p>
              <Mark shape="triangle" tone="bad" />{' '}
              {path === undefined ? undefined : (
                <>
                  <code>
                    <Foreign text={path} most={300} />
                  </code>{' '}
                </>
              )}
              <Foreign text={message} most={1000} />
              {code === undefined ? undefined : (
                <span class="soft">
                  {' '}
                  (<Foreign text={code} most={80} />)
                </span>
              )}
            </p>
            {fix === undefined ? undefined : (
              <p>
                <span class="soft">{texts.overview.fix}</span> <Foreign text={fix} most={1000} />
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
