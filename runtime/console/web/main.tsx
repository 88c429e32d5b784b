/** Mounts the console in the page. */
import { render } from 'preact'
import { App } from './shell/app.tsx'

const root = document.getElementById('app')
if (root) render(<App />, root)
