/**
 * The layout of every page that Gatehouse serves to users: one inline style sheet, no images and no external resources.
 * Only pages that use passkeys have a script, from their own origin.
 *
 * The content security policy allows only the style, by its hash, and forms that submit to the login's destinations.
 * Pages are readable in light and dark mode, at 320 pixels and at 400 percent zoom. Pages are usable with a keyboard
 * and a screen reader (WCAG 2.2 AA).
 */
import { createHash } from 'node:crypto'
import { type Html, html } from './html.ts'

const style = `
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--text:#1b1f24;--soft:#4f5761;--line:#d5dae0;--main:#0b57d0;
--on-main:#fff;--warn-bg:#fff4dc;--warn-line:#b26a00}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1d2126;--text:#eceff3;--soft:#b3bcc6;--line:#3a424c;
--main:#a8c7fa;--on-main:#062e6f;--warn-bg:#33290f;--warn-line:#e0a030}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem 1rem;background:var(--bg);
color:var(--text);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:30rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem;padding:1.75rem}
h1{font-size:1.375rem;line-height:1.3;margin:0 0 1rem;overflow-wrap:anywhere}
p{margin:0 0 1rem;overflow-wrap:anywhere}
a{color:var(--main)}
.soft{color:var(--soft);font-size:.9375rem}
dl{margin:0 0 1.25rem;border-top:1px solid var(--line)}
dl>div{padding:.625rem 0;border-bottom:1px solid var(--line)}
dt{color:var(--soft);font-size:.875rem}
dd{margin:0;font-weight:600;overflow-wrap:anywhere}
ul{margin:0;padding-left:1.1rem;font-weight:400}
fieldset{min-width:0;border:1px solid var(--line);border-radius:.5rem;margin:0 0 1.25rem;padding:.5rem 1rem .75rem}
legend{padding:0 .35rem;font-weight:600;overflow-wrap:anywhere;max-width:100%}
dd form{margin-top:.5rem}
label{display:flex;gap:.6rem;align-items:baseline;padding:.3rem 0;overflow-wrap:anywhere}
.field label{display:block;padding:0 0 .25rem;font-weight:600}
.field input{font:inherit;width:100%;min-height:2.75rem;padding:.5rem .75rem;color:inherit;background:var(--bg);
border:1px solid var(--soft);border-radius:.5rem}
.or{display:flex;align-items:center;gap:.75rem;margin:1.25rem 0;color:var(--soft)}
.or::before,.or::after{content:"";flex:1;border-top:1px solid var(--line)}
.passkey .buttons{margin-bottom:1rem}
[hidden]{display:none}
.warn{background:var(--warn-bg);border-left:.3rem solid var(--warn-line);border-radius:.25rem;padding:.75rem 1rem}
.buttons{display:flex;flex-wrap:wrap;gap:.75rem}
button{font:inherit;font-weight:600;padding:.6rem 1.25rem;min-height:2.75rem;border-radius:.5rem;cursor:pointer;
border:1px solid var(--line);background:transparent;color:inherit;flex:1 1 auto}
button.main{background:var(--main);border-color:var(--main);color:var(--on-main)}
:focus-visible{outline:3px solid var(--main);outline-offset:2px}
`

const styleHash = createHash('sha256').update(style).digest('base64')

export interface HtmlPage {
  readonly html: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Renders a page. `formTargets` lists the origins and schemes that the page's forms may submit to. Browsers also apply
 * form-action to redirects, so the list must include every step between this server and the client. `script` is the
 * path of a script on this origin. The script may send requests to this origin.
 */
export function page(
  title: string,
  body: Html,
  formTargets: readonly string[] = [],
  script?: string,
): HtmlPage {
  const forms = formTargets.length === 0 ? "'none'" : `'self' ${[...new Set(formTargets)].join(' ')}`
  const whole = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${{ markup: style }}</style>
${script === undefined ? undefined : html`<script type="module" src="${script}"></script>`}
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`
  return {
    html: whole.markup,
    headers: {
      'Content-Security-Policy': [
        "default-src 'none'",
        `style-src 'sha256-${styleHash}'`,
        ...(script === undefined ? [] : ["script-src 'self'", "connect-src 'self'"]),
        `form-action ${forms}`,
        "frame-ancestors 'none'",
        "base-uri 'none'",
      ].join('; '),
    },
  }
}
