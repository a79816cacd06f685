/** Why the server did not do what the page asked, in the languages that it does not speak itself. */

import { language } from "./words.js";

const REASONS = {
  es: {
    name: "El nombre lleva de 1 a 40 caracteres.",
    no_address: "Hace falta un teléfono, un nombre de usuario o ambos.",
    phone: "El teléfono lleva de 8 a 15 cifras, primero el código de país.",
    username: "El nombre de usuario lleva de 3 a 35 minúsculas, cifras, puntos y guiones bajos.",
    phone_taken: "Alguien aquí ya tiene ese número.",
    username_taken: "Alguien aquí ya tiene ese nombre de usuario.",
    full: "Ya hay {most} personas.",
    file: "No se envían archivos de ese tipo o tamaño: fotos hasta 5 MB, WebP hasta 500 KB.",
    version: "No es una transcripción de la versión {version}.",
    form: "«people» y «events» deben ser listas como las de una transcripción guardada.",
    long: "Una transcripción tiene como máximo {most} eventos.",
    proves_nothing: "Alguien debe decir algo y algo debe volver.",
    playing: "Ya se está reproduciendo otra transcripción.",
    event_part: "Evento {event}: {part} no está como en una transcripción guardada.",
    event_person: "Evento {event}: {person} no es una de sus personas.",
    event_kind: "Evento {event}: no tiene «says», «gets», «refused» ni «switches».",
    event_answer: "Evento {event}: la respuesta necesita letras propias, no solo huecos donde cabe cualquiera.",
    lost_message: "{reference} no es un mensaje anterior a este.",
    lost_choice: "El mensaje ya no tiene el botón o la fila {title}.",
  },
  pt: {
    name: "O nome tem de 1 a 40 caracteres.",
    no_address: "É preciso um telefone, um nome de usuário ou os dois.",
    phone: "O telefone tem de 8 a 15 dígitos, primeiro o código do país.",
    username: "O nome de usuário tem de 3 a 35 letras minúsculas, dígitos, pontos e sublinhados.",
    phone_taken: "Alguém aqui já tem esse número.",
    username_taken: "Alguém aqui já tem esse nome de usuário.",
    full: "Já há {most} pessoas.",
    file: "Não se enviam arquivos desse tipo ou tamanho: fotos até 5 MB, WebP até 500 KB.",
    version: "Não é uma transcrição da versão {version}.",
    form: "“people” e “events” devem ser listas como as de uma transcrição salva.",
    long: "Uma transcrição tem no máximo {most} eventos.",
    proves_nothing: "Alguém deve dizer algo e algo deve voltar.",
    playing: "Outra transcrição já está sendo reproduzida.",
    event_part: "Evento {event}: {part} não está como numa transcrição salva.",
    event_person: "Evento {event}: {person} não é uma das suas pessoas.",
    event_kind: "Evento {event}: não tem “says”, “gets”, “refused” nem “switches”.",
    event_answer: "Evento {event}: a resposta precisa de letras próprias, não só lacunas onde cabe qualquer uma.",
    lost_message: "{reference} não é uma mensagem anterior a esta.",
    lost_choice: "A mensagem não tem mais o botão ou a linha {title}.",
  },
};

/** The server's answer as one reads it; in its own English where there is no other sentence. */
export function reasonOf({ error, reason, values }) {
  const sentence = REASONS[language()]?.[reason];
  return sentence ? sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]) : error;
}
