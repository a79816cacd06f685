"""What things are called in English, Spanish and Portuguese: the registry is written in English."""

from collections.abc import Iterable

from app.search.words import ALL_STOP_WORDS, spaced, stem, words

_NOISE = spaced(
    """
    mcp server servers servidor servidores install instala instalar instale instalame agrega agregar
    adiciona adicionar add conecta conectar connect busca buscar search procura procurar encontrar find
    herramienta herramientas ferramenta ferramentas tool tools
    """
)
"""Words that people search with and every entry answers to."""

# The first word of each line is what entries say; the others lead to it.
_TOPICS = """\
time clock timezone hora horas horario horarios tempo tiempo reloj relogio fuso huso
weather forecast clima tiempo tempo pronostico previsao meteorologia lluvia chuva
files filesystem file archivo archivos arquivo arquivos fichero ficheros carpeta carpetas pasta pastas
memory memoria recordar lembrar recuerdos lembrancas remember conocimiento conhecimento
thinking reasoning pensar pensamiento pensamento razonar razonamiento raciocinio
database sql datos dados bancos
repository repositorio repositorios codigo code
email mail correo correos mails emails
calendar calendario agenda turnos compromissos
maps map mapa mapas direcciones enderecos ubicacion localizacao
translate translation traducir traduccion traductor traduzir traducao tradutor
music musica cancion canciones cancoes
video videos peliculas filmes cine cinema movies
images image imagen imagenes imagem imagens foto fotos photos
browser navegador navegar web paginas
search buscador buscadores pesquisa pesquisar
news noticias noticia diario jornal
finance stocks finanzas financas bolsa acciones acoes
payments payment pago pagos pagamento pagamentos cobrar cobros cobrancas
invoices billing factura facturas fatura faturas nota
bank banking banco bancario
money currency moneda monedas dinero dinheiro moeda moedas cambio dolar
crypto cryptocurrency cripto criptomonedas criptomoedas bitcoin
shop ecommerce tienda tiendas loja lojas compras comprar vender ventas vendas
travel flights viaje viajes viagem viagens vuelo vuelos voo voos
hotels lodging hotel hoteles hoteis alojamiento hospedagem alquiler aluguel
food recipes comida receta recetas receita receitas cocina cozinha
health medical salud saude medico medica
sports deporte deportes esporte esportes futbol futebol football soccer
games juego juegos jogo jogos ajedrez xadrez chess
tasks tarea tareas tarefa tarefas pendientes pendencias
notes nota notas apuntes anotaciones anotacoes
projects proyecto proyectos projeto projetos
spreadsheet sheets planilla planillas planilha planilhas excel
slides presentation presentacion presentaciones apresentacao apresentacoes diapositivas
pdf documentos documento document documents
messages chat mensaje mensajes mensagem mensagens
contacts crm contacto contactos contato contatos clientes
phone call telefono telefone llamada llamadas ligacao
sms texto textos
home iot casa hogar domotica luces luzes
lights light luz luces luzes
books libro libros livro livros lectura leitura
library documentation documentacion documentacao biblioteca
science papers ciencia articulos artigos investigacion pesquisas
jobs trabajo trabajos emprego empregos empleo vagas
law legal leyes leis juridico
maths calculator calculadora matematica matematicas calcular calculo
charts chart grafico graficos graficas diagrama diagramas
design diseno desenho figma
cloud nube nuvem
containers docker contenedores conteineres
monitoring logs monitoreo monitoramento registros
security seguridad seguranca
domains domain dominio dominios
social redes sociales sociais
podcast audio voz voice sonido som
transport transit transporte tren trenes trem trens autobus onibus colectivo
ships vessels barco barcos navio navios
parks parque parques nationalparks
taxes tax impuesto impuestos imposto impostos
school education educacion educacao escuela escola
""".splitlines()


def _leads() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for line in _TOPICS:
        topic, *others = line.split()
        for word in (topic, *others):
            found.setdefault(stem(word), []).append(topic)
    return {word: tuple(dict.fromkeys(topics)) for word, topics in found.items()}


_LEADS = _leads()


def asked(query: str) -> list[str]:
    """The words that a search, or a name, is about; all of them where it is about servers as such."""
    said = words(query.lower())  # GitHub is one word
    return [word for word in said if word not in ALL_STOP_WORDS and word not in _NOISE] or said


def expanded(said: Iterable[str]) -> list[str]:
    """The same words, and after them what entries call it."""
    listed = list(said)
    return list(dict.fromkeys([*listed, *(topic for word in listed for topic in _LEADS.get(stem(word), ()))]))
