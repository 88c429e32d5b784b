/** Connect: the server's address, then a link, a command or a file for each client. */
import type { Connect } from '../../api.ts'
import { get } from '../data/client.ts'
import { useReloadOn } from '../data/live.ts'
import { useResource } from '../data/use-resource.ts'
import { Mark } from '../parts/marks.tsx'
import { Copyable, Loaded } from '../parts/notices.tsx'
import { Foreign, Time } from '../parts/text.tsx'
import { texts } from '../texts.ts'

/** Schemes of links that could run scripts in this page. */
const ownSchemes = /^\s*(?:javascript|data|vbscript|blob|file|about):/i

export function ConnectPage() {
  const resource = useResource('connect', (signal) => get<Connect>('connect', signal))
  const { data, reload } = resource
  const isWaiting = data !== undefined && data.firstCall === undefined
  useReloadOn('calls', reload, isWaiting)
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{texts.pages.connect}</h1>
      </div>
      <Loaded resource={resource}>
        {(connect) => (
          <>
            <p>{introductionOf(connect)}</p>
            <Copyable text={connect.url} label={texts.connect.address} />
            <p role="status">
              {connect.firstCall === undefined ? (
                <Mark shape="ring" tone="soft" word={texts.connect.waiting} />
              ) : (
                <>
                  <Mark shape="check" tone="good" word={texts.connect.seen} />{' '}
                  <Time at={connect.firstCall} exact />
                </>
              )}
            </p>
            {connect.clients.map((client) => (
              <Client key={client.id} client={client} />
            ))}
          </>
        )}
      </Loaded>
    </>
  )
}

function introductionOf({ auth, isLocalOnly }: Connect): string {
  if (isLocalOnly) return texts.connect.localOnly
  return auth ? texts.connect.login : texts.connect.open
}

function Client({ client }: { readonly client: Connect['clients'][number] }) {
  const { label, add, command, file, link } = client
  return (
    <section class="client" aria-label={label}>
      <h2>
        <Foreign text={label} most={60} />
      </h2>
      {link === undefined || ownSchemes.test(link) ? undefined : (
        <p>
          <a class="button" href={link} rel="noopener noreferrer">
            {texts.connect.install(label.slice(0, 60))}
          </a>
        </p>
      )}
      {add === undefined ? undefined : (
        <>
          <p class="soft">{texts.connect.add}</p>
          <Copyable text={add} label={texts.connect.addTo(label)} />
        </>
      )}
      {command === undefined ? undefined : (
        <>
          <p class="soft">{add === undefined ? texts.connect.command : texts.connect.otherCommand}</p>
          <Copyable text={command} label={texts.connect.commandFor(label)} />
        </>
      )}
      {file === undefined ? undefined : (
        <>
          <p class="soft">
            {texts.connect.file} <code>{file.path}</code>
          </p>
          <Copyable text={file.content} label={texts.connect.fileFor(label)} block />
        </>
      )}
    </section>
  )
}
